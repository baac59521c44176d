// All runs of a folder, brought up to date after each event by those that were created since the oldest that changed.
import { useRef } from "react";
import type { Event, Runs } from "../api";
import { type Answer, useServer } from "../server";

export function useRuns(folder: string): Answer<Runs> {
  const changed = useRef(new Set<string>()); // the ids of runs since the last request; "" for any run
  const asked = useRef(new Set<string>()); // those whose answer has not arrived
  const since = useRef(0);
  const concerns = (event: Event) => {
    if (event.kind === "reset") changed.current.add("");
    if ((event.kind !== "run" && event.kind !== "points") || event.folder !== folder) return false;
    changed.current.add(event.run);
    return event.kind === "run" ? 400 : 5000;
  };
  const query = (runs: Runs) => {
    for (const id of changed.current) asked.current.add(id);
    changed.current.clear();
    if (!asked.current.size) return null;
    const created = runs.created.filter((_, row) => row === 0 || asked.current.has(runs.id[row] ?? ""));
    since.current = asked.current.has("") ? 0 : Math.floor(Math.min(...created, Date.now() / 1000));
    return { since: since.current };
  };
  const merge = (runs: Runs, newer: Runs) => {
    asked.current.clear();
    return merged(runs, newer, since.current);
  };
  return useServer<Runs>("/api/runs", { folder }, concerns, { query, merge });
}

// Replace the runs that were created since a time by others.
function merged(runs: Runs, newer: Runs, since: number): Runs {
  const older = runs.created.flatMap((created, row) => (created < since ? [row] : []));
  const join = <T>(after: T[], before: T[]): T[] => [...after, ...older.map((row) => before[row] as T)];
  const columns = <T>(after: Record<string, (T | null)[]>, before: Record<string, (T | null)[]>) => {
    const column = (name: string) => join(after[name] ?? newer.id.map(() => null), before[name] ?? []);
    const names = Object.keys({ ...after, ...before });
    return Object.fromEntries(names.map((name) => [name, column(name).map((value) => value ?? null)]));
  };
  return {
    id: join(newer.id, runs.id),
    name: join(newer.name, runs.name),
    status: join(newer.status, runs.status),
    trigger: join(newer.trigger, runs.trigger),
    created: join(newer.created, runs.created),
    seconds: join(newer.seconds, runs.seconds),
    metrics: columns(newer.metrics, runs.metrics),
    inputs: columns(newer.inputs, runs.inputs),
  };
}
