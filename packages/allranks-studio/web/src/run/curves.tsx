// The curves of a run: one chart for each step and family of metrics. They grow while the run is running.
import { useMemo } from "react";
import type { Curve, Folder } from "../api";
import { Charts, Controls, chartsOf, type Series } from "../charts";
import { Empty, Loading, Problem } from "../parts";
import { useServer } from "../server";

export function Curves({ folder, run, step }: { folder: Folder; run: string; step: string | undefined }) {
  const query = { folder: folder.id, runs: run, step };
  const { data, error } = useServer<Curve[]>("/api/curves", query, (event) => {
    return event.kind === "points" && event.run === run;
  });
  const charts = useMemo(() => {
    const found = chartsOf((data ?? []).map((each) => seriesOf(each, step === undefined)));
    return found.map((series) => series.map((each, color) => ({ ...each, color })));
  }, [data, step]);
  if (!data) return error ? <Problem error={error} /> : <Loading />;
  if (!charts.length) return <Empty title="No curves: a metric has one when it is logged more than once" />;
  return (
    <>
      <Controls />
      <Charts charts={charts} />
    </>
  );
}

// A chart is of a family of metrics of a step; the trials of a sweep and the iterations of a loop share theirs.
function seriesOf({ step, family, metric, x, y, time }: Curve, hasSteps: boolean): Series {
  const indices = hasSteps ? step.match(/\[\d+\]/g) : null;
  const label = indices ? `${metric} ${indices.join("")}` : metric;
  const note = hasSteps ? step.replace(/\[\d+\]/g, "[…]") : "";
  return { title: family, note, label, color: 0, x, y, time, start: time[0] ?? 0 };
}
