// The small curves of the rows in sight. They are read when the table rests, since those of all runs would take seconds.
import { useEffect } from "react";
import type { Sparklines } from "../api";
import { onEvent } from "../events";
import { get } from "../server";
import { createStore, useStore } from "../store";

const MOST = 200; // of a request
const REST = 80; // milliseconds without a new row in sight
const FRESH = 5000; // milliseconds after which the curve of a running run is read again

const known = createStore<Sparklines>({});
const waiting = new Set<string>();
const asked = new Set<string>();
let timer = 0;

function ask(folder: string, run: string, delay: number): void {
  waiting.add(run);
  clearTimeout(timer);
  timer = window.setTimeout(() => {
    const runs = [...waiting].slice(-MOST);
    waiting.clear();
    if (!runs.length) return; // all rows went out of sight
    for (const each of runs) asked.add(each);
    get<Sparklines>("/api/sparklines", { folder, runs: runs.join(",") }).then(
      (found) => known.set((before) => ({ ...before, ...found })),
      () => runs.map((each) => asked.delete(each)), // the table itself shows what is wrong
    );
  }, delay);
}

// Read the curves again whose runs have new points or have ended.
let last = 0;
onEvent((event) => {
  if (event.kind === "reset") asked.clear();
  if (event.kind !== "points" && event.kind !== "run") return;
  if (!asked.has(event.run) || (event.kind === "points" && performance.now() - last < FRESH)) return;
  last = performance.now();
  ask(event.folder, event.run, 500);
});

export function Sparkline({ folder, run }: { folder: string; run: string }) {
  const found = useStore(known)[run];
  useEffect(() => {
    if (!asked.has(run)) ask(folder, run, REST);
    return () => {
      waiting.delete(run);
    };
  }, [folder, run]);
  const values = found?.values.filter(Number.isFinite) ?? [];
  if (values.length < 2) return null;
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const points = values.map((value, index) => {
    const x = 1 + (index / (values.length - 1)) * 94;
    return `${x.toFixed(1)} ${(high > low ? 19 - ((value - low) / (high - low)) * 16 : 11).toFixed(1)}`;
  });
  return (
    <svg className="sparkline" width="96" height="22" role="img" aria-label={`Curve of ${found?.metric}`}>
      <title>{found?.metric}</title>
      <path d={`M${points.join("L")}`} />
    </svg>
  );
}
