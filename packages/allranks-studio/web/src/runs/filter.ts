// The filter above the table: words, and conditions such as `status:failed loss<0.3 created>2026-11-01 -trigger:nightly`.
import type { Runs } from "../api";

type Value = string | number | null;
type Test = (row: number) => boolean;

export const EXAMPLE = "status:failed  loss<0.3  -trigger:nightly";

// Return the rows that match, in the order of the runs. Raise Error for a field that no run has.
export function filterRows(runs: Runs, text: string): number[] {
  const tests = [...text.matchAll(/(-?)(?:([^\s"<>=:!]+)(<=|>=|!=|[:=<>]))?("[^"]*"?|\S+)/g)].map(
    ([, minus, field, operator, value = ""]): Test => {
      const wanted = value.replaceAll('"', "");
      const test = field && operator ? compare(fieldsOf(runs, field), operator, wanted) : hasWord(runs, wanted);
      return minus ? (row) => !test(row) : test;
    },
  );
  const rows = runs.id.map((_, row) => row);
  return tests.length ? rows.filter((row) => tests.every((test) => test(row))) : rows;
}

function hasWord(runs: Runs, word: string): Test {
  const wanted = word.toLowerCase();
  const columns: readonly string[][] = [runs.name, runs.id, runs.trigger, runs.status];
  return (row) => columns.some((column) => column[row]?.toLowerCase().includes(wanted));
}

// Return the columns that a name stands for: "loss" is also "train/loss" and "validation_loss".
function fieldsOf(runs: Runs, field: string): Value[][] {
  const fixed: Record<string, Value[]> = {
    status: runs.status,
    state: runs.status,
    name: runs.name,
    pipeline: runs.name,
    trigger: runs.trigger,
    id: runs.id,
    run: runs.id,
    seconds: runs.seconds,
    duration: runs.seconds,
    created: runs.created,
    started: runs.created,
  };
  if (Object.hasOwn(fixed, field)) return [fixed[field] ?? []];
  const named = [...Object.entries(runs.metrics), ...Object.entries(runs.inputs)];
  const found = named
    .filter(([name]) => name === field || (name.endsWith(field) && /[/_.-]/.test(name.at(-field.length - 1) ?? "")))
    .map(([, column]) => column);
  if (found.length) return found;
  const names = [...Object.keys(fixed).filter((name) => !["state", "pipeline", "run"].includes(name))];
  throw new Error(`There is no field "${field}". Fields: ${names.join(", ")}, each metric and each input.`);
}

function compare(columns: Value[][], operator: string, text: string): Test {
  const wanted = text.toLowerCase();
  const date = /^\d{4}-\d\d/.test(text) ? Date.parse(text.length === 10 ? `${text}T00:00` : text) / 1000 : Number.NaN;
  const limit = Number.isNaN(date) ? Number(text) : date;
  const test = (value: Value): boolean => {
    if (value === null || value === undefined) return false;
    if (operator === ":") return String(value).toLowerCase().includes(wanted);
    const amount = Number(value);
    const isNumber = !Number.isNaN(amount) && !Number.isNaN(limit);
    const order = isNumber ? amount - limit : String(value).toLowerCase().localeCompare(wanted);
    if (operator === "=") return order === 0;
    if (operator === "!=") return order !== 0;
    if (!isNumber) return false;
    if (operator === "<") return order < 0;
    if (operator === ">") return order > 0;
    return operator === "<=" ? order <= 0 : order >= 0;
  };
  return (row) => columns.some((column) => test(column[row] ?? null));
}
