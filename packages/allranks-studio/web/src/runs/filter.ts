// The filter above the table: words, and conditions such as `status:failed loss<0.3 created>2026-11-01 -trigger:nightly`.
import type { Runs } from "../api";

type Value = string | number | null;
type Test = (row: number) => boolean;

export const EXAMPLE = "status:failed  loss<0.3  -trigger:nightly";

const FIXED = ["status", "name", "trigger", "id", "seconds", "created"] as const;
const FIELDS = `${FIXED.join(", ")}, pipeline, each metric and each input`;

// Return the rows that match, in the order of the runs, or what is wrong with the filter.
export function filterRows(runs: Runs, text: string): [rows: number[], problem: string] {
  let problem = "";
  const tests = [...text.matchAll(/(-?)(?:([^\s"<>=:!]+)(<=|>=|!=|[:=<>]))?("[^"]*"?|\S+)/g)].map(
    ([, minus, field, operator = ":", value = ""]): Test => {
      const columns = field ? fieldsOf(runs, field) : [runs.name, runs.id, runs.trigger, runs.status];
      if (!columns.length) problem = `There is no field "${field}". Fields: ${FIELDS}.`;
      const test = compare(columns, operator, value.replaceAll('"', "").toLowerCase());
      return minus ? (row) => !test(row) : test;
    },
  );
  return problem ? [[], problem] : [[...runs.id.keys()].filter((row) => tests.every((test) => test(row))), ""];
}

// Return the columns that a name stands for: "loss" is also "train/loss" and "validation_loss".
function fieldsOf(runs: Runs, field: string): Value[][] {
  const fixed = FIXED.find((name) => name === (field === "pipeline" ? "name" : field));
  if (fixed) return [runs[fixed]];
  const isMeant = (full: string) => full === field || ["/", "_", ".", "-"].some((mark) => full.endsWith(mark + field));
  const named: [string, Value[]][] = [...Object.entries(runs.metrics), ...Object.entries(runs.inputs)];
  return named.filter(([full]) => isMeant(full)).map(([, column]) => column);
}

function compare(columns: Value[][], operator: string, wanted: string): Test {
  const isDate = /^\d{4}-\d\d/.test(wanted);
  const limit = isDate ? Date.parse(wanted.length === 10 ? `${wanted}T00:00` : wanted) / 1000 : Number(wanted);
  const test = (value: Value | undefined): boolean => {
    if (value === null || value === undefined) return false;
    if (operator === ":") return String(value).toLowerCase().includes(wanted);
    const isNumber = !Number.isNaN(Number(value)) && !Number.isNaN(limit);
    const order = isNumber ? Number(value) - limit : String(value).toLowerCase().localeCompare(wanted);
    if (operator === "=" || operator === "!=") return (order === 0) === (operator === "=");
    const isOrdered = operator.startsWith("<") ? order < 0 : order > 0;
    return isNumber && (isOrdered || (order === 0 && operator.endsWith("=")));
  };
  return (row) => columns.some((column) => test(column[row]));
}
