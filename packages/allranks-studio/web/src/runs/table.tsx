// biome-ignore-all lint/a11y/useSemanticElements: rows at absolute places cannot be those of a <table>
// biome-ignore-all lint/a11y/useFocusableInteractive: the grid has the focus and names the active row
// A grid of thousands of rows, of which only those in sight exist. Rows that stay in sight are not drawn again.
import { type KeyboardEvent, type MouseEvent, memo, useEffect, useLayoutEffect, useRef, useState } from "react";
import type { Runs, Status } from "../api";
import { count, shortTime } from "../format";
import { State, symbol, useMedia } from "../parts";
import { navigate, view } from "../router";
import { type Column, Duration, Name } from "./columns";

// A line of the table: a run, or the head of a group.
export type Line = { row: number; group?: never } | { group: string; title: string; rows: number[] };

const OVERSCAN = 6;
const CHUNK = 4; // the rows in sight change by so many at once

interface Properties {
  runs: Runs;
  lines: Line[];
  columns: Column[];
  sort: { key: string; descending: boolean };
  onSort: (key: string) => void;
  selected: Set<string>;
  onSelect: (ids: string[], isSelected: boolean) => void;
  closed: Set<string>;
  onClose: (group: string) => void;
}

export function Table(properties: Properties) {
  const { runs, lines, columns, sort, selected, closed } = properties;
  const isNarrow = useMedia("(max-width: 600px)");
  const height = isNarrow ? 54 : 32;
  const grid = useRef<HTMLDivElement>(null);
  const [first, setFirst] = useState(0);
  const [visible, setVisible] = useState(40);
  const [active, setActive] = useState("");
  const lastSelected = useRef(-1);
  const keyOf = (line: Line | undefined) =>
    line === undefined ? "" : line.group === undefined ? (runs.id[line.row] ?? "") : `group:${line.group}`;
  const position = lines.findIndex((line) => keyOf(line) === active);

  useLayoutEffect(() => {
    const element = grid.current;
    if (!element) return;
    const measure = () => setVisible(Math.ceil(element.clientHeight / height) + 1);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [height]);
  useEffect(() => {
    // Arrows move through the rows without a click before.
    const press = (event: globalThis.KeyboardEvent) => {
      if (event.target === document.body && event.key.startsWith("Arrow")) grid.current?.focus({ preventScroll: true });
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);

  const move = (to: number) => {
    const index = Math.max(0, Math.min(lines.length - 1, to));
    const element = grid.current;
    if (!element || !lines[index]) return;
    const head = isNarrow ? 0 : height;
    const top = index * height;
    if (top < element.scrollTop) element.scrollTop = top;
    const bottom = top + height + head - element.clientHeight;
    if (bottom > element.scrollTop) element.scrollTop = bottom;
    setActive(keyOf(lines[index]));
  };
  const select = (index: number, withRange: boolean) => {
    const line = lines[index];
    if (!line) return;
    const from = withRange && lastSelected.current >= 0 ? lastSelected.current : index;
    const range = lines.slice(Math.min(from, index), Math.max(from, index) + 1);
    const rows = range.flatMap((each) => (each.group === undefined ? [each.row] : range.length > 1 ? [] : each.rows));
    const ids = rows.map((row) => runs.id[row] ?? "");
    properties.onSelect(ids, !ids.every((id) => selected.has(id)) || from !== index);
    lastSelected.current = index;
  };
  const press = (event: KeyboardEvent) => {
    if (event.target !== grid.current || event.ctrlKey || event.metaKey || event.altKey) return;
    const line = lines[position];
    const targets: Record<string, number> = {
      ArrowDown: position + 1,
      ArrowUp: position - 1,
      PageDown: position + visible - 3,
      PageUp: position - visible + 3,
      Home: 0,
      End: lines.length - 1,
    };
    const target = targets[event.key];
    if (target !== undefined) move(target);
    else if (event.key === " ") select(position, event.shiftKey);
    else if (event.key === "Enter" && line) open(line);
    else if ((event.key === "ArrowLeft" || event.key === "ArrowRight") && line?.group !== undefined) {
      if (closed.has(line.group) === (event.key === "ArrowRight")) properties.onClose(line.group);
    } else return;
    event.preventDefault();
  };
  const open = (line: Line) => {
    if (line.group === undefined) navigate(view(["runs", runs.id[line.row] ?? ""]));
    else properties.onClose(line.group);
  };
  // One handler for all rows, so that they need no functions of their own.
  const click = (event: MouseEvent) => {
    const target = event.target as Element;
    const index = Number(target.closest<HTMLElement>("[data-line]")?.dataset.line ?? -1);
    const line = lines[index];
    if (!line || target.closest("a")) return;
    setActive(keyOf(line));
    if (target.closest(".select")) select(index, event.shiftKey);
    else open(line);
  };

  const pool = visible + 2 * OVERSCAN + CHUNK + 1; // elements, which show another row when theirs is out of sight
  const from = Math.max(0, first - OVERSCAN);
  const to = Math.min(lines.length, first + visible + OVERSCAN + CHUNK);
  const width = columns.reduce((sum, column) => sum + Number.parseInt(column.width.replace("minmax(", ""), 10), 48);
  const tracks = isNarrow ? "34px minmax(0, 1fr) max-content" : `34px ${columns.map(({ width }) => width).join(" ")}`;
  const isReused = position >= 0 && (position < from || position >= to); // the active row exists also out of sight
  const indices = Array.from({ length: to - from }, (_, index) => from + index).concat(isReused ? [position] : []);
  return (
    <div
      ref={grid}
      role="treegrid"
      tabIndex={0}
      className={isNarrow ? "grid narrow" : "grid"}
      aria-label="Runs"
      aria-rowcount={lines.length + 1}
      aria-multiselectable
      aria-activedescendant={position >= 0 ? `line-${active}` : undefined}
      style={{ "--tracks": tracks, "--row": `${height}px`, "--width": isNarrow ? "0" : `${width}px` } as object}
      onKeyDown={press}
      onClick={click}
      onScroll={(event) => setFirst(Math.floor(event.currentTarget.scrollTop / height / CHUNK) * CHUNK)}
    >
      <div role="row" className="head" aria-rowindex={1}>
        <span role="columnheader">
          <span className="hidden">Selected</span>
        </span>
        {(isNarrow ? columns.filter(({ key }) => key === "name" || key === "seconds") : columns).map((column) => {
          const isSorted = sort.key === column.key;
          const order = sort.descending ? "descending" : "ascending";
          return (
            <span
              key={column.key}
              role="columnheader"
              aria-sort={isSorted ? order : undefined}
              className={column.isNumber ? "number" : undefined}
            >
              <button type="button" title={column.hint || undefined} onClick={() => properties.onSort(column.key)}>
                {column.title}
                {isSorted && <i aria-hidden="true">{sort.descending ? " ↓" : " ↑"}</i>}
              </button>
            </span>
          );
        })}
      </div>
      <div role="rowgroup" className="lines" style={{ height: lines.length * height }}>
        {indices.map((index) => {
          const line = lines[index] as Line;
          const id = keyOf(line);
          const isSelected =
            line.group === undefined ? selected.has(id) : line.rows.every((row) => selected.has(runs.id[row] ?? ""));
          return (
            <Row
              key={index < from || index >= to ? "active" : index % pool}
              id={id}
              index={index}
              top={index * height}
              runs={runs}
              row={line.group === undefined ? line.row : -1}
              group={line.group === undefined ? null : line}
              columns={columns}
              isNarrow={isNarrow}
              isActive={index === position}
              isSelected={isSelected}
              isClosed={line.group !== undefined && closed.has(line.group)}
            />
          );
        })}
      </div>
    </div>
  );
}

interface RowProperties {
  id: string;
  index: number;
  top: number;
  runs: Runs;
  row: number;
  group: Extract<Line, { group: string }> | null;
  columns: Column[];
  isNarrow: boolean;
  isActive: boolean;
  isSelected: boolean;
  isClosed: boolean;
}

const Row = memo(function Row(properties: RowProperties) {
  const { group, row, runs, columns, isNarrow } = properties;
  const check = (
    <span role="gridcell" className="select">
      <i aria-hidden="true">{properties.isSelected ? "☑" : "☐"}</i>
    </span>
  );
  return (
    <div
      role="row"
      id={`line-${properties.id}`}
      data-line={properties.index}
      className={`${group ? "line of" : "line"}${properties.isActive ? " active" : ""}`}
      aria-rowindex={properties.index + 2}
      aria-selected={properties.isSelected}
      aria-expanded={group ? !properties.isClosed : undefined}
      style={{ transform: `translateY(${properties.top}px)` }}
    >
      {check}
      {group ? (
        <Group title={group.title} rows={group.rows} runs={runs} isClosed={properties.isClosed} />
      ) : isNarrow ? (
        <NarrowCells runs={runs} row={row} />
      ) : (
        columns.map((column) => (
          <span key={column.key} role="gridcell" className={column.isNumber ? "number" : undefined}>
            {column.cell(row)}
          </span>
        ))
      )}
    </div>
  );
});

function NarrowCells({ runs, row }: { runs: Runs; row: number }) {
  return (
    <>
      <span role="gridcell">
        <State status={runs.status[row] ?? "NotStarted"} short /> <Name runs={runs} row={row} />
        <small>
          {shortTime(runs.created[row] ?? 0)} · {runs.trigger[row]}
        </small>
      </span>
      <span role="gridcell" className="number">
        <Duration runs={runs} row={row} />
      </span>
    </>
  );
}

function Group({ title, rows, runs, isClosed }: { title: string; rows: number[]; runs: Runs; isClosed: boolean }) {
  const counts = new Map<Status, number>();
  for (const row of rows) counts.set(runs.status[row] as Status, (counts.get(runs.status[row] as Status) ?? 0) + 1);
  return (
    <span role="gridcell" className="title">
      <i aria-hidden="true">{isClosed ? "▸" : "▾"}</i> <b>{title}</b> <small>{count(rows.length, "run")}</small>
      {[...counts].map(([status, amount]) => (
        <small key={status} className={`state ${status}`} title={status}>
          {symbol(status)} {amount}
        </small>
      ))}
    </span>
  );
}
