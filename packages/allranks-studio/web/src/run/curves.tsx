// The curves of a run: one chart for each step and family of metrics. They grow while the run is running.
import { useEffect, useMemo, useState } from "react";
import type { Curve, Folder, Points } from "../api";
import { Charts, Controls, chartsOf, type Series } from "../charts";
import { useEvents } from "../events";
import { Empty, Loading, Problem } from "../parts";
import { useServer } from "../server";

const LONGEST = 5000; // points of a grown curve; the server thins longer ones

export default function Curves({ folder, run, step }: { folder: Folder; run: string; step: string | undefined }) {
  const { data, error, reload } = useServer<Curve[]>("/api/curves", { folder: folder.id, runs: run, step });
  const curves = useGrowing(data, run, reload);
  const charts = useMemo(() => {
    const found = chartsOf((curves ?? []).map((each) => seriesOf(each, step === undefined)));
    return found.map((series) => series.map((each, color) => ({ ...each, color })));
  }, [curves, step]);
  if (!curves) return error ? <Problem error={error} /> : <Loading />;
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

// Add the points that arrive, several times a second.
function useGrowing(data: Curve[] | null, run: string, reload: () => void): Curve[] | null {
  const [grown, setGrown] = useState(data);
  const waiting = useMemo((): Points[] => [], []);
  useEffect(() => setGrown(data), [data]);
  useEvents((event) => event.kind === "points" && event.run === run && waiting.push(event));
  useEffect(() => {
    const timer = setInterval(() => {
      if (!waiting.length || document.hidden) return;
      const events = waiting.splice(0);
      const canGrow = (event: Points) => grown?.some((curve) => isOf(curve, event) && curve.x.length < LONGEST);
      if (events.every(canGrow)) setGrown((before) => before?.map((curve) => extended(curve, events)) ?? null);
      else reload();
    }, 250);
    return () => clearInterval(timer);
  }, [waiting, grown, reload]);
  return grown;
}

const isOf = (curve: Curve, event: Points) => curve.step === event.step && curve.metric === event.metric;

function extended(curve: Curve, events: Points[]): Curve {
  const own = events.filter((event) => isOf(curve, event));
  if (!own.length) return curve;
  const [x, y] = [own.flatMap((event) => event.x), own.flatMap((event) => event.y)];
  const time = x.map((_, index) => Date.now() / 1000 + index / 1e6);
  return { ...curve, x: [...curve.x, ...x], y: [...curve.y, ...y], time: [...curve.time, ...time] };
}
