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
  hint: string;
  width: string; // of the grid's track
  isNumber: boolean;
  value: (row: number) => string | number | null; // what it is sorted by
  cell: (row: number) => ReactNode;
}

const RANK = ["Running", "Preparing", "NotStarted", "Failed", "Interrupted", "Canceled", "Skipped", "Completed"];

// Return the columns: the fixed ones, with the chosen metrics ("m:train/loss") and inputs ("i:epochs") between them.
export function columnsOf(folder: string, runs: Runs, chosen: string[]): Column[] {
  const text = (key: string, title: string, width: string, values: (string | null)[]): Column => ({
    key,
    title,
    hint: "",
    width,
    isNumber: false,
    value: (row) => values[row] ?? null,
    cell: (row) => <span title={values[row] ?? ""}>{values[row]}</span>,
  });
  const columns: Column[] = [
    {
      ...text("status", "State", "130px", runs.status),
      value: (row) => RANK.indexOf(runs.status[row] ?? ""),
      cell: (row) => <State status={runs.status[row] ?? "NotStarted"} />,
    },
    {
      ...text("name", "Pipeline", "minmax(200px, 1fr)", runs.name),
      cell: (row) => <Name runs={runs} row={row} />,
    },
    text("trigger", "Trigger", "120px", runs.trigger),
    {
      ...text("created", "Started", "118px", []),
      value: (row) => runs.created[row] ?? 0,
      cell: (row) => <span title={when(runs.created[row] ?? 0)}>{shortTime(runs.created[row] ?? 0)}</span>,
    },
    {
      ...text("seconds", "Duration", "112px", []),
      isNumber: true,
      value: (row) =>
        runs.seconds[row] ??
        (isActive(runs.status[row] ?? "Completed") ? Date.now() / 1000 - (runs.created[row] ?? 0) : null),
      cell: (row) => <Duration runs={runs} row={row} />,
    },
  ];
  for (const key of chosen) {
    const name = key.slice(2);
    const title = name.split("/").at(-1) ?? name;
    const metric = key.startsWith("m:") ? runs.metrics[name] : undefined;
    const input = key.startsWith("i:") ? runs.inputs[name] : undefined;
    if (metric) {
      columns.push({
        ...text(key, title, "112px", []),
        hint: `metric ${name}`,
        isNumber: true,
        value: (row) => metric[row] ?? null,
        cell: (row) => number(metric[row]),
      });
    } else if (input) {
      const amount = (row: number) => (input[row] ? Number(input[row]) : Number.NaN);
      columns.push({
        ...text(key, title, "124px", input),
        hint: `input ${name}`,
        value: (row) => (Number.isNaN(amount(row)) ? (input[row] ?? null) : amount(row)),
      });
    }
  }
  columns.push({
    ...text("sparkline", "Curve", "112px", []),
    hint: "the main metric over the training",
    cell: (row) => <Sparkline folder={folder} run={runs.id[row] ?? ""} />,
  });
  return columns;
}

export function Name({ runs, row }: { runs: Runs; row: number }) {
  return (
    <a href={view(["runs", runs.id[row] ?? ""])} tabIndex={-1} title={runs.id[row]}>
      {runs.name[row]} <small>{runs.id[row]?.slice(0, 8)}</small>
    </a>
  );
}

// The time of a running run grows.
export function Duration({ runs, row }: { runs: Runs; row: number }) {
  const isRunning = isActive(runs.status[row] ?? "Completed");
  const now = useNow(isRunning);
  return duration(isRunning ? Math.max(0, now - (runs.created[row] ?? now)) : (runs.seconds[row] ?? null));
}

// Compare two rows by a column. Rows without a value come last either way.
export function byColumn(column: Column, descending: boolean): (one: number, other: number) => number {
  return (one, other) => {
    const [left, right] = [column.value(one), column.value(other)];
    if (left === null || right === null) return Number(left === null) - Number(right === null) || one - other;
    const isText = typeof left === "string" || typeof right === "string";
    const order = isText ? String(left).localeCompare(String(right), "en", { numeric: true }) : left - right;
    return (descending ? -order : order) || one - other;
  };
}
