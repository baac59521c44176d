// All runs of a folder: filter, sort, groups, and the choice of those to compare.
import { useDeferredValue, useMemo, useState } from "react";
import type { Folder, Runs } from "../api";
import { Button, Search, Select } from "../controls";
import { count } from "../format";
import { Dialog, Empty, Loading, Problem, useMedia } from "../parts";
import { setQuery, useAddress, view } from "../router";
import { createSavedStore, useStore } from "../store";
import { byColumn, columnsOf } from "./columns";
import { useRuns } from "./data";
import { EXAMPLE, filterRows } from "./filter";
import { type Line, sorting, Table } from "./table";

const MOST_COMPARED = 20;

const GROUPS = [
  ["", "not at all"],
  ["name", "by pipeline"],
  ["trigger", "by trigger"],
] as const;
type Group = (typeof GROUPS)[number][0];
const grouping = createSavedStore<Group>("studio.runs.group", "");
const choice = createSavedStore<string[] | null>("studio.runs.columns", null); // null: the commonest metrics

export default function RunsView({ folder }: { folder: Folder }) {
  const { data, error } = useRuns(folder.id);
  if (!data) return error ? <Problem error={error} /> : <Loading />;
  if (data.id.length) return <AllRuns folder={folder.id} runs={data} />;
  return (
    <Empty title="No run yet">
      <p>
        Run a pipeline from the <a href={view(["designer"])}>designer</a>, or from a terminal in this folder:
      </p>
      <pre>allranks run pipelines/two_spirals.py</pre>
    </Empty>
  );
}

function AllRuns({ folder, runs }: { folder: string; runs: Runs }) {
  const text = useAddress().query.get("filter") ?? "";
  const sort = useStore(sorting);
  const group = useStore(grouping);
  const chosen = useStore(choice);
  const isNarrow = useMedia("(max-width: 600px)");
  const [selected, setSelected] = useState<Set<string>>(new Set());
  const [closed, setClosed] = useState<Set<string>>(new Set());
  const [isChoosing, setIsChoosing] = useState(false);
  const metrics = useMemo(() => chosen ?? commonest(runs), [chosen, runs]);
  const columns = useMemo(() => columnsOf(folder, runs, metrics, isNarrow), [folder, runs, metrics, isNarrow]);
  const filter = useDeferredValue(text);
  const [rows, problem] = useMemo(() => filterRows(runs, filter), [runs, filter]);
  const lines = useMemo(() => {
    const column = columns.find(({ key }) => key === sort.key);
    const sorted = column ? rows.toSorted(byColumn(column, sort.descending)) : rows;
    const lineOf = (row: number): Line => ({ key: runs.id[row] ?? "", group: null, rows: [row] });
    if (!group) return sorted.map(lineOf);
    // Groups in the order of their first run, each with its head; closed ones have no more.
    return [...Map.groupBy(sorted, (row) => runs[group][row] ?? "")].flatMap(([name, members]): Line[] => [
      { key: `group:${name}`, group: name, rows: members },
      ...(closed.has(name) ? [] : members.map(lineOf)),
    ]);
  }, [runs, rows, columns, sort, group, closed]);

  const ids = runs.id.filter((id) => selected.has(id));
  const canCompare = ids.length >= 2 && ids.length <= MOST_COMPARED;
  const total = count(runs.id.length, "run");
  const amount = rows.length < runs.id.length ? `${rows.length.toLocaleString("en")} of ${total}` : total;
  return (
    <>
      <search className="bar">
        <Search
          aria-label="Filter the runs"
          aria-invalid={problem ? true : undefined}
          placeholder={`Filter   ${EXAMPLE}`}
          value={text}
          onChange={(value) => setQuery({ filter: value })}
          spellCheck={false}
        />
        <Select label="Group" value={group} options={GROUPS} onChange={(value) => grouping.set(value as Group)} />
        <Button text="Columns" onClick={() => setIsChoosing(true)} />
        {canCompare ? (
          <a className="button primary" href={view(["compare"], { runs: ids.join(",") })}>
            Compare {ids.length}
          </a>
        ) : (
          <Button text="Compare" disabled title={`Select 2 to ${MOST_COMPARED} runs: click the box, or press Space`} />
        )}
        {ids.length > 0 && (
          <Button text={`Clear ${ids.length} selected`} className="plain" onClick={() => setSelected(new Set())} />
        )}
        <output className={problem ? "wrong" : "soft"}>{problem || amount}</output>
      </search>
      <Table
        runs={runs}
        lines={lines}
        columns={columns}
        isNarrow={isNarrow}
        selected={selected}
        onSelect={(changed, isSelected) => setSelected((before) => changedSet(before, changed, isSelected))}
        closed={closed}
        onClose={(name) => setClosed((before) => changedSet(before, [name], !before.has(name)))}
      />
      {isChoosing && <Chooser runs={runs} chosen={metrics} onClose={() => setIsChoosing(false)} />}
    </>
  );
}

// Return the keys of the metrics that most runs have.
function commonest(runs: Runs): string[] {
  const absent = (name: string) => runs.metrics[name]?.filter((value) => value === null).length ?? 0;
  const names = Object.keys(runs.metrics).sort((one, other) => absent(one) - absent(other));
  return names.slice(0, 3).map((name) => `m:${name}`);
}

function changedSet(before: Set<string>, names: string[], isIn: boolean): Set<string> {
  return isIn ? new Set([...before, ...names]) : new Set([...before].filter((name) => !names.includes(name)));
}

function Chooser({ runs, chosen, onClose }: { runs: Runs; chosen: string[]; onClose: () => void }) {
  const [text, setText] = useState("");
  const toggle = (key: string) =>
    choice.set(chosen.includes(key) ? chosen.filter((each) => each !== key) : [...chosen, key]);
  const list = (title: string, prefix: string, names: string[]) => (
    <fieldset className="choices">
      <legend>{title}</legend>
      {names
        .filter((name) => name.toLowerCase().includes(text.toLowerCase()))
        .map((name) => (
          <label key={name} className="check">
            <input type="checkbox" checked={chosen.includes(prefix + name)} onChange={() => toggle(prefix + name)} />
            {name}
          </label>
        ))}
    </fieldset>
  );
  return (
    <Dialog title="Columns" onClose={onClose}>
      <Search placeholder="Find a metric or an input" value={text} onChange={setText} />
      {list("Metrics", "m:", Object.keys(runs.metrics))}
      {list("Inputs", "i:", Object.keys(runs.inputs))}
    </Dialog>
  );
}
