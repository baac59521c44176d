// The usage of the instances of a step: CPU, memory and GPUs over time.
import { useMemo } from "react";
import type { Folder, Run, Usage } from "../api";
import { Chart, type Series } from "../charts";
import { Empty, isActive, Loading, Problem } from "../parts";
import { setQuery, useAddress } from "../router";
import { useServer } from "../server";

const GIGABYTE = 1e9;

export default function Resources({ folder, run }: { folder: Folder; run: Run }) {
  const steps = run.steps.filter(({ ranks }) => ranks.length);
  const wanted = useAddress().query.get("step");
  const longest = steps.toSorted((one, other) => lasted(other) - lasted(one))[0];
  const step = steps.find(({ path }) => path === wanted) ?? longest;
  const query = { folder: folder.id, run: run.id, step: step?.path };
  const { data, error } = useServer<Usage[]>(step ? "/api/usage" : "", query, (event) => {
    return "run" in event && event.run === run.id && step !== undefined && isActive(step.status) && 4000;
  });
  const charts = useMemo(() => (data ? chartsOf(data) : []), [data]);
  if (!step) return <Empty title="No step has started yet" />;
  return (
    <>
      <div className="bar plain">
        <label className="check">
          Step
          <select value={step.path} onChange={(event) => setQuery({ step: event.target.value })}>
            {steps.map(({ path }) => (
              <option key={path}>{path}</option>
            ))}
          </select>
        </label>
        <span className="soft">{step.layout}</span>
      </div>
      {error && <Problem error={error} />}
      {!data && !error && <Loading />}
      {data && !charts.length && <Empty title="No samples: the step was too short, or its result was reused" />}
      <div className="charts">
        {charts.map(({ title, note, series }) => (
          <Chart key={title} title={title} note={note} series={series} isTime />
        ))}
      </div>
    </>
  );
}

const lasted = (step: { started: number | null; ended: number | null }) =>
  step.started === null ? 0 : (step.ended ?? Date.now() / 1000) - step.started;

function chartsOf(usage: Usage[]): { title: string; note: string; series: Series[] }[] {
  const start = Math.min(...usage.map(({ time }) => time[0] ?? Number.POSITIVE_INFINITY));
  const series = (values: (each: Usage) => (number | null)[]): Series[] =>
    usage
      .map((each, color) => ({
        label: `instance ${each.instance}`,
        color,
        x: each.time,
        y: values(each),
        time: each.time,
        start,
      }))
      .filter(({ y }) => y.some((value) => value !== null));
  const charts = [
    { title: "CPU", note: "% of one core", series: series(({ cpu }) => cpu) },
    { title: "Memory", note: "GB", series: series(({ memory }) => memory.map((size) => size / GIGABYTE)) },
    { title: "GPU", note: "% busy, mean of the GPUs", series: series(({ gpu }) => gpu) },
  ];
  return charts.filter((chart) => chart.series.some(({ x }) => x.length > 1));
}
