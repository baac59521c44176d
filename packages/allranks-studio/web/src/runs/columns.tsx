// The columns of the table of runs: what a cell shows, and what it is sorted by.
import type { ReactNode } from "react";
import type { Runs } from "../api";
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

const ORDER = ["Running", "Preparing", "NotStarted", "Failed", "Interrupted", "Canceled", "Skipped", "Completed"];

// Return the columns: the fixed ones, and the chosen metrics ("m:train/loss") and inputs ("i:epochs") between them. A
// narrow screen has the names, with what else fits below, and the durations.
export function columnsOf(folder: string, runs: Runs, chosen: string[], isNarrow: boolean): Column[] {
  const { id, name, status, trigger, created } = runs;
  const text = (values: (string | null)[]) => ({
    value: (row: number) => values[row] ?? null,
    cell: (row: number) => <span title={values[row] ?? ""}>{values[row]}</span>,
  });
  const state = (row: number, short: boolean) => <State status={status[row] ?? "NotStarted"} short={short} />;
  const link = (row: number) => (
    <a href={view(["runs", id[row] ?? ""])} tabIndex={-1} title={id[row]}>
      {name[row]} <small>{id[row]}</small>
    </a>
  );
  const below = (row: number) => (
    <>
      {state(row, true)} {link(row)}
      <small>
        {shortTime(created[row] ?? 0)} · {trigger[row]}
      </small>
    </>
  );
  const seconds = (row: number) => {
    return isActive(status[row] ?? "Completed") ? Date.now() / 1000 - (created[row] ?? 0) : (runs.seconds[row] ?? null);
  };
  const started = (row: number) => <span title={when(created[row] ?? 0)}>{shortTime(created[row] ?? 0)}</span>;
  const names = { ...text(name), key: "name", title: "Pipeline", width: 200, cell: isNarrow ? below : link };
  const durations: Column = {
    key: "seconds",
    title: "Duration",
    width: 112,
    isNumber: true,
    value: seconds,
    cell: (row) => <Duration isActive={isActive(status[row] ?? "Completed")} seconds={() => seconds(row)} />,
  };
  if (isNarrow) return [names, durations];
  return [
    {
      key: "status",
      title: "State",
      width: 130,
      value: (row) => ORDER.indexOf(status[row] ?? ""),
      cell: (row) => state(row, false),
    },
    names,
    { ...text(trigger), key: "trigger", title: "Trigger", width: 120 },
    { key: "created", title: "Started", width: 118, value: (row) => created[row] ?? 0, cell: started },
    durations,
    ...chosen.flatMap((key): Column[] => {
      const path = key.slice(2);
      const title = path.split("/").at(-1) ?? path;
      const [metric, input] = key.startsWith("m:") ? [runs.metrics[path]] : [undefined, runs.inputs[path]];
      const cell = (row: number) => number(metric?.[row]);
      if (metric)
        return [
          { key, title, hint: `metric ${path}`, width: 112, isNumber: true, value: (row) => metric[row] ?? null, cell },
        ];
      return input ? [{ ...text(input), key, title, hint: `input ${path}`, width: 124 }] : [];
    }),
    {
      ...text([]),
      key: "sparkline",
      title: "Curve",
      hint: "the main metric over the training",
      width: 112,
      cell: (row) => <Sparkline folder={folder} run={id[row] ?? ""} />,
    },
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
