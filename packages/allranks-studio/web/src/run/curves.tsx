// The curves of a run: one chart for each step and family of metrics. They grow while the run is running.
import { useEffect, useMemo, useState } from "react";
import type { Curve, Event, Folder } from "../api";
import { Chart, Controls, type Series } from "../charts";
import { useEvents } from "../events";
import { Empty, Loading, Problem } from "../parts";
import { useServer } from "../server";

const LONGEST = 5000; // points of a grown curve; the server thins longer ones

export default function Curves({ folder, run, step }: { folder: Folder; run: string; step?: string | undefined }) {
  const query = step ? { folder: folder.id, runs: run, step } : { folder: folder.id, runs: run };
  const { data, error, reload } = useServer<Curve[]>("/api/curves", query);
  const curves = useGrowing(data, run, reload);
  const charts = useMemo(() => chartsOf(curves ?? [], step === undefined), [curves, step]);
  if (!curves) return error ? <Problem error={error} /> : <Loading />;
  if (!charts.length) {
    return <Empty title="No metrics yet">{step ? null : <p>Steps log them with MLflow or allranks.runtime.</p>}</Empty>;
  }
  return (
    <>
      <div className="bar plain">
        <Controls />
      </div>
      <div className="charts">
        {charts.map(({ title, note, series }) => (
          <Chart key={`${note}/${title}`} title={title} note={note} series={series} />
        ))}
      </div>
    </>
  );
}

// Return the charts of the families of each step; the trials of a sweep and the iterations of a loop share theirs.
function chartsOf(curves: Curve[], hasSteps: boolean): { title: string; note: string; series: Series[] }[] {
  const charts = new Map<string, { title: string; note: string; series: Series[] }>();
  for (const { step, family, metric, x, y, time } of curves) {
    const shared = hasSteps ? step.replace(/\[\d+\]/g, "[…]") : step;
    const label = shared === step ? metric : `${metric} ${step.match(/\[\d+\]/g)?.join("")}`;
    const chart = charts.get(`${shared}\n${family}`) ?? { title: family, note: hasSteps ? shared : "", series: [] };
    chart.series.push({ label, color: chart.series.length, x, y, time, start: time[0] ?? 0 });
    charts.set(`${shared}\n${family}`, chart);
  }
  // Single values are in the table of metrics.
  return [...charts.values()].filter(({ series }) => series.some(({ x }) => x.length > 1));
}

// Add the points that arrive, several times a second.
function useGrowing(data: Curve[] | null, run: string, reload: () => void): Curve[] | null {
  const [grown, setGrown] = useState(data);
  useEffect(() => setGrown(data), [data]);
  const waiting = useMemo((): Extract<Event, { kind: "points" }>[] => [], []);
  useEvents((event) => {
    if (event.kind === "points" && event.run === run) waiting.push(event);
  });
  useEffect(() => {
    const timer = setInterval(() => {
      if (!waiting.length || document.hidden) return;
      const events = waiting.splice(0);
      const isKnown = (event: (typeof events)[number]) =>
        grown?.some(({ step, metric, x }) => step === event.step && metric === event.metric && x.length < LONGEST);
      if (!events.every(isKnown)) return reload();
      setGrown((before) => before?.map((curve) => extended(curve, events)) ?? null);
    }, 250);
    return () => clearInterval(timer);
  }, [waiting, grown, reload]);
  return grown;
}

function extended(curve: Curve, events: Extract<Event, { kind: "points" }>[]): Curve {
  const own = events.filter(({ step, metric }) => step === curve.step && metric === curve.metric);
  if (!own.length) return curve;
  const x = own.flatMap((event) => event.x);
  const now = Date.now() / 1000;
  return {
    ...curve,
    x: [...curve.x, ...x],
    y: [...curve.y, ...own.flatMap((event) => event.y)],
    time: [...curve.time, ...x.map((_, index) => now + index / 1e6)],
  };
}
