// The columns of the table of runs: what a cell shows, and what it is sorted by.
import type { ReactNode } from "react";
import { type Runs, SYMBOLS } from "../api";
import { duration, number, shortTime, when } from "../format";
import { isActive, State, useNow } from "../parts";
import { view } from "../router";
import { Sparkline } from "./sparklines";

export interface Column {
  key: string;
  title: string;
  hint?: string;
  width: number; // pixels; the names take the rest
  isNumber?: boolean;
  value: (row: number) => string | number | null; // what it is sorted by
  cell: (row: number) => ReactNode;
}

// Return the columns: the fixed ones, and the chosen metrics ("m:train/loss") and inputs ("i:epochs") between them. A
// narrow screen has the names, with what else fits below, and the durations.
export function columnsOf(folder: string, runs: Runs, chosen: string[], isNarrow: boolean): Column[] {
  const { id, name, status, trigger, created } = runs;
  const statusOf = (row: number) => status[row] ?? "NotStarted";
  const start = (row: number) => shortTime(created[row] ?? 0);
  const text = (key: string, title: string, width: number, values: (string | null)[]): Column => {
    const cell = (row: number) => <span title={values[row] ?? ""}>{values[row]}</span>;
    return { key, title, width, value: (row) => values[row] ?? null, cell };
  };
  const link = (row: number) => (
    <a href={view(["runs", id[row] ?? ""])} tabIndex={-1} title={id[row]}>
      {name[row]} <small>{id[row]}</small>
    </a>
  );
  const below = (row: number) => (
    <>
      <State status={statusOf(row)} short /> {link(row)}
      <small>
        {start(row)} · {trigger[row]}
      </small>
    </>
  );
  const seconds = (row: number) =>
    isActive(statusOf(row)) ? Date.now() / 1000 - (created[row] ?? 0) : (runs.seconds[row] ?? null);
  const names = { ...text("name", "Pipeline", 200, name), cell: isNarrow ? below : link };
  const ticking = (row: number) => <Duration isActive={isActive(statusOf(row))} seconds={() => seconds(row)} />;
  const durations = { ...text("seconds", "Duration", 112, []), isNumber: true, value: seconds, cell: ticking };
  if (isNarrow) return [names, durations];
  const order = (row: number) => Object.keys(SYMBOLS).indexOf(statusOf(row));
  const state = (row: number) => <State status={statusOf(row)} />;
  const moment = (row: number) => <span title={when(created[row] ?? 0)}>{start(row)}</span>;
  const curve = (row: number) => <Sparkline folder={folder} run={id[row] ?? ""} />;
  const chosenColumn = (key: string): Column[] => {
    const path = key.slice(2);
    const title = path.split("/").at(-1) ?? path;
    const [metric, input] = key.startsWith("m:") ? [runs.metrics[path]] : [undefined, runs.inputs[path]];
    const value = (row: number) => metric?.[row] ?? null;
    const cell = (row: number) => number(metric?.[row]);
    if (metric) return [{ key, title, hint: `metric ${path}`, width: 112, isNumber: true, value, cell }];
    return input ? [{ ...text(key, title, 124, input), hint: `input ${path}` }] : [];
  };
  return [
    { key: "status", title: "State", width: 130, value: order, cell: state },
    names,
    text("trigger", "Trigger", 120, trigger),
    { key: "created", title: "Started", width: 118, value: (row) => created[row] ?? 0, cell: moment },
    durations,
    ...chosen.flatMap(chosenColumn),
    { ...text("sparkline", "Curve", 112, []), hint: "the main metric over the training", cell: curve },
  ];
}

// The time of a running run grows.
function Duration({ isActive: isTicking, seconds }: { isActive: boolean; seconds: () => number | null }) {
  useNow(isTicking);
  return duration(seconds());
}

// Compare two rows by a column, numbers in texts by their size. Rows without a value come last either way.
export function byColumn({ value }: Column, descending: boolean): (one: number, other: number) => number {
  return (one, other) => {
    const [left, right] = [value(one), value(other)];
    if (left === null || right === null) return Number(left === null) - Number(right === null) || one - other;
    const isText = typeof left === "string" || typeof right === "string";
    const numbers = Number(left) - Number(right);
    const texts = () => String(left).localeCompare(String(right), "en", { numeric: true });
    const order = isText && Number.isNaN(numbers) ? texts() : numbers;
    return (descending ? -order : order) || one - other;
  };
}
