// All runs of a folder: filter, sort, groups, and the choice of those to compare.
import { useDeferredValue, useEffect, useMemo, useRef, useState } from "react";
import type { Folder, Runs } from "../api";
import { count } from "../format";
import { Dialog, Empty, Loading, Problem } from "../parts";
import { setQuery, useAddress, view } from "../router";
import { useServer } from "../server";
import { createSavedStore, useStore } from "../store";
import { byColumn, columnsOf } from "./columns";
import { EXAMPLE, filterRows } from "./filter";
import { type Line, Table } from "./table";

export const MOST_COMPARED = 20;

const sorting = createSavedStore("studio.runs.sort", { key: "created", descending: true });
const grouping = createSavedStore<"" | "name" | "trigger">("studio.runs.group", "");
const choice = createSavedStore<string[] | null>("studio.runs.columns", null); // null: the commonest metrics

export default function RunsView({ folder }: { folder: Folder }) {
  const { data, error } = useServer<Runs>("/api/runs", { folder: folder.id }, (event) => {
    if (event.kind === "run") return event.folder === folder.id && 400;
    return event.kind === "points" && event.folder === folder.id && 5000;
  });
  if (!data) return error ? <Problem error={error} /> : <Loading />;
  if (!data.id.length) {
    return (
      <Empty title="No run yet">
        <p>
          Run a pipeline from the <a href={view(["designer"])}>designer</a> or a terminal in this folder:
        </p>
        <pre>allranks run pipelines/two_spirals.py</pre>
      </Empty>
    );
  }
  return <AllRuns folder={folder.id} runs={data} />;
}

function AllRuns({ folder, runs }: { folder: string; runs: Runs }) {
  const text = useAddress().query.get("filter") ?? "";
  const sort = useStore(sorting);
  const group = useStore(grouping);
  const chosen = useStore(choice);
  const [selected, setSelected] = useState<Set<string>>(new Set());
  const [closed, setClosed] = useState<Set<string>>(new Set());
  const [isChoosing, setIsChoosing] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  const columns = useMemo(() => {
    return columnsOf(folder, runs, chosen ?? commonest(runs).map((name) => `m:${name}`));
  }, [folder, runs, chosen]);
  const filter = useDeferredValue(text);
  const found = useMemo(() => {
    try {
      return { rows: filterRows(runs, filter), problem: "" };
    } catch (problem) {
      return { rows: [], problem: (problem as Error).message };
    }
  }, [runs, filter]);
  const lines = useMemo(() => {
    const column = columns.find(({ key }) => key === sort.key);
    const rows = column ? found.rows.toSorted(byColumn(column, sort.descending)) : found.rows;
    return group ? grouped(runs, rows, group, closed) : rows.map((row): Line => ({ row }));
  }, [runs, found, columns, sort, group, closed]);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const isTyping = (event.target as Element).closest("input, textarea, select, dialog");
      if (event.key !== "/" || isTyping) return;
      event.preventDefault();
      field.current?.focus();
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);

  const ids = runs.id.filter((id) => selected.has(id));
  const canCompare = ids.length >= 2 && ids.length <= MOST_COMPARED;
  return (
    <>
      <h1 className="hidden">Runs</h1>
      <search className="bar">
        <input
          ref={field}
          type="search"
          aria-label="Filter the runs"
          aria-invalid={found.problem ? true : undefined}
          placeholder={`Filter   ${EXAMPLE}   /`}
          title={`Words, and conditions on fields, metrics and inputs, such as ${EXAMPLE}`}
          value={text}
          onChange={(event) => setQuery({ filter: event.target.value })}
          spellCheck={false}
          autoComplete="off"
        />
        <label className="check">
          Group{" "}
          <select value={group} onChange={(event) => grouping.set(event.target.value as typeof group)}>
            <option value="">not at all</option>
            <option value="name">by pipeline</option>
            <option value="trigger">by trigger</option>
          </select>
        </label>
        <button type="button" onClick={() => setIsChoosing(true)}>
          Columns
        </button>
        {canCompare ? (
          <a className="button primary" href={view(["compare"], { runs: ids.join(",") })}>
            Compare {ids.length}
          </a>
        ) : (
          <button type="button" disabled title={`Select 2 to ${MOST_COMPARED} runs: click the box, or press Space`}>
            {ids.length > MOST_COMPARED ? `Compare at most ${MOST_COMPARED}` : "Compare"}
          </button>
        )}
        {ids.length > 0 && (
          <button type="button" className="plain" onClick={() => setSelected(new Set())}>
            Clear {ids.length} selected
          </button>
        )}
        <output className={found.problem ? "wrong" : "soft"}>
          {found.problem ||
            (found.rows.length < runs.id.length
              ? `${found.rows.length.toLocaleString("en")} of ${count(runs.id.length, "run")}`
              : count(runs.id.length, "run"))}
        </output>
      </search>
      <Table
        runs={runs}
        lines={lines}
        columns={columns}
        sort={sort}
        onSort={(key) =>
          sorting.set((before) => ({ key, descending: before.key === key ? !before.descending : key === "created" }))
        }
        selected={selected}
        onSelect={(changed, isSelected) => setSelected((before) => withChanges(before, changed, isSelected))}
        closed={closed}
        onClose={(name) => setClosed((before) => withChanges(before, [name], !before.has(name)))}
      />
      {isChoosing && (
        <Chooser runs={runs} columns={columns.map(({ key }) => key)} onClose={() => setIsChoosing(false)} />
      )}
    </>
  );
}

// Return the names of the metrics that most runs have.
function commonest(runs: Runs): string[] {
  const amounts = Object.entries(runs.metrics).map(([name, values]) => ({
    name,
    amount: values.reduce((sum: number, value) => sum + (value === null ? 0 : 1), 0),
  }));
  const sorted = amounts.sort((one, other) => other.amount - one.amount);
  return sorted.slice(0, 3).map(({ name }) => name);
}

function withChanges(before: Set<string>, names: string[], isIn: boolean): Set<string> {
  const after = new Set(before);
  for (const name of names) isIn ? after.add(name) : after.delete(name);
  return after;
}

// Return the lines of groups in the order of their first run, each with its head; closed ones have no more.
function grouped(runs: Runs, rows: number[], by: "name" | "trigger", closed: Set<string>): Line[] {
  const groups = new Map<string, number[]>();
  for (const row of rows) {
    const key = runs[by][row] ?? "";
    const members = groups.get(key);
    if (members) members.push(row);
    else groups.set(key, [row]);
  }
  return [...groups].flatMap(([group, members]): Line[] => [
    { group, title: group, rows: members },
    ...(closed.has(group) ? [] : members.map((row): Line => ({ row }))),
  ]);
}

function Chooser({ runs, columns, onClose }: { runs: Runs; columns: string[]; onClose: () => void }) {
  const [text, setText] = useState("");
  const chosen = columns.filter((key) => /^[mi]:/.test(key));
  const toggle = (key: string, isIn: boolean) =>
    choice.set(isIn ? [...chosen, key] : chosen.filter((each) => each !== key));
  const list = (title: string, prefix: string, names: string[]) => (
    <fieldset className="choices">
      <legend>{title}</legend>
      {names
        .filter((name) => name.toLowerCase().includes(text.toLowerCase()))
        .map((name) => (
          <label key={name} className="check">
            <input
              type="checkbox"
              checked={chosen.includes(prefix + name)}
              onChange={(event) => toggle(prefix + name, event.target.checked)}
            />
            {name}
          </label>
        ))}
    </fieldset>
  );
  return (
    <Dialog title="Columns" onClose={onClose}>
      <input
        type="search"
        aria-label="Find a metric or an input"
        placeholder="Find a metric or an input"
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      {list("Metrics", "m:", Object.keys(runs.metrics))}
      {list("Inputs", "i:", Object.keys(runs.inputs))}
    </Dialog>
  );
}
