// The usage of the instances of a step: CPU, memory and GPUs over time.
import { useMemo } from "react";
import type { Folder, Run, Step, Usage } from "../api";
import { type ChartData, Charts, type Series } from "../charts";
import { Select } from "../controls";
import { Empty, isActive, Loading, Problem } from "../parts";
import { setQuery, useAddress } from "../router";
import { useServer } from "../server";

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
  const options = steps.map(({ path }): [string, string] => [path, path]);
  return (
    <>
      <div className="bar plain">
        <Select label="Step" value={step.path} options={options} onChange={(path) => setQuery({ step: path })} />
        <span className="soft">{step.layout}</span>
      </div>
      {error && <Problem error={error} />}
      {!data && !error && <Loading />}
      {data && !charts.length && <Empty title="No samples: the step was too short, or its result was reused" />}
      <Charts charts={charts} isTime />
    </>
  );
}

const lasted = ({ started, ended }: Step) => (started === null ? 0 : (ended ?? Date.now() / 1000) - started);

function chartsOf(usage: Usage[]): ChartData[] {
  const start = Math.min(...usage.map(({ time }) => time[0] ?? Number.POSITIVE_INFINITY));
  const chart = (title: string, note: string, values: (each: Usage) => (number | null)[]): ChartData => {
    const series = usage.map((each, color): Series => {
      return { label: `instance ${each.instance}`, color, x: each.time, y: values(each), time: each.time, start };
    });
    return { title, note, series: series.filter(({ y }) => y.some((value) => value !== null)) };
  };
  const charts = [
    chart("CPU", "% of one core", ({ cpu }) => cpu),
    chart("Memory", "GB", ({ memory }) => memory.map((size) => size / 1e9)),
    chart("GPU", "% busy, mean of the GPUs", ({ gpu }) => gpu),
  ];
  return charts.filter(({ series }) => series.some(({ x }) => x.length > 1));
}
