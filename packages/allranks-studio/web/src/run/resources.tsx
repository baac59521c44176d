// The usage of the instances of a step: CPU, memory and GPUs over time.
import { useMemo } from "react";
import type { Folder, Run, Step, Usage } from "../api";
import { Charts, chartsOf, type Series } from "../charts";
import { Select } from "../controls";
import { Empty, isActive, Loading, Problem } from "../parts";
import { setQuery, useAddress } from "../router";
import { useServer } from "../server";

export function Resources({ folder, run }: { folder: Folder; run: Run }) {
  const steps = run.steps.filter(({ ranks }) => ranks.length);
  const wanted = useAddress().query.get("step");
  const longest = steps.toSorted((one, other) => lasted(other) - lasted(one))[0];
  const step = steps.find(({ path }) => path === wanted) ?? longest;
  const query = { folder: folder.id, run: run.id, step: step?.path };
  const { data, error } = useServer<Usage[]>(step ? "/api/usage" : "", query, (event) => {
    return "run" in event && event.run === run.id && step !== undefined && isActive(step.status) && 4000;
  });
  const charts = useMemo(() => chartsOf(seriesOf(data ?? [])), [data]);
  if (!step) return <Empty title="No step has started yet" />;
  return (
    <>
      <div className="bar plain">
        <Select
          label="Step"
          value={step.path}
          options={steps.map(({ path }) => path)}
          onChange={(path) => setQuery({ step: path })}
        />
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

function seriesOf(usage: Usage[]): Series[] {
  const start = Math.min(...usage.map(({ time }) => time[0] ?? Number.POSITIVE_INFINITY));
  const all = usage.flatMap(({ instance, time, cpu, memory, gpu }, color) => {
    const common = { label: `instance ${instance}`, color, x: time, time, start };
    return [
      { ...common, title: "CPU", note: "% of one core", y: cpu },
      { ...common, title: "Memory", note: "GB", y: memory.map((size) => size / 1e9) },
      { ...common, title: "GPU", note: "% busy, mean of the GPUs", y: gpu },
    ];
  });
  return all.filter(({ y }) => y.some((value) => value !== null));
}
