// biome-ignore-all lint/a11y/useSemanticElements: rows at absolute places cannot be those of a <table>
// biome-ignore-all lint/a11y/useFocusableInteractive: the grid has the focus and names the active row
// A grid of thousands of rows, of which only those in sight exist. Rows that stay in sight are not drawn again.
import { type KeyboardEvent, type MouseEvent, memo, useLayoutEffect, useRef, useState } from "react";
import { type Runs, SYMBOLS } from "../api";
import { count } from "../format";
import { navigate, view } from "../router";
import { createSavedStore, useStore } from "../store";
import type { Column } from "./columns";

export const sorting = createSavedStore("studio.runs.sort", { key: "created", descending: true });

// A line of the table: a run, or the head of a group.
export interface Line {
  key: string; // the run's id, or the group's
  group: string | null; // its name; null for a run
  rows: number[]; // the run's, or those of the group
}

const OVERSCAN = 6;
const CHUNK = 4; // the rows in sight change by so many at once

interface Properties {
  runs: Runs;
  lines: Line[];
  columns: Column[];
  isNarrow: boolean;
  selected: Set<string>;
  onSelect: (ids: string[], isSelected: boolean) => void;
  closed: Set<string>;
  onClose: (group: string) => void;
}

export function Table(properties: Properties) {
  const { runs, lines, columns, isNarrow, selected, closed } = properties;
  const sort = useStore(sorting);
  const height = isNarrow ? 54 : 32;
  const grid = useRef<HTMLDivElement>(null);
  const [first, setFirst] = useState(0);
  const [visible, setVisible] = useState(40);
  const [active, setActive] = useState("");
  const lastSelected = useRef(-1);
  const idsOf = ({ rows }: Line) => rows.map((row) => runs.id[row] ?? "");
  const position = active ? lines.findIndex(({ key }) => key === active) : -1;

  useLayoutEffect(() => {
    const measure = () => setVisible(Math.ceil((grid.current?.clientHeight ?? 0) / height) + 1);
    measure();
    addEventListener("resize", measure);
    return () => removeEventListener("resize", measure);
  }, [height]);

  const changeSort = (key: string) =>
    sorting.set((before) => ({ key, descending: before.key === key ? !before.descending : key === "created" }));
  const move = (to: number) => {
    const index = Math.max(0, Math.min(lines.length - 1, to));
    const [element, line] = [grid.current, lines[index]];
    if (!element || !line) return;
    const [top, bottom] = [index * height, (index + 2) * height - element.clientHeight];
    element.scrollTop = Math.max(bottom, Math.min(top, element.scrollTop));
    setActive(line.key);
  };
  const select = (index: number, withRange: boolean) => {
    const from = withRange && lastSelected.current >= 0 ? lastSelected.current : index;
    const range = lines.slice(Math.min(from, index), Math.max(from, index) + 1);
    const ids = range.flatMap(idsOf);
    properties.onSelect(ids, from !== index || !ids.every((id) => selected.has(id)));
    lastSelected.current = index;
  };
  const open = ({ key, group }: Line) => {
    if (group === null) navigate(view(["runs", key]));
    else properties.onClose(group);
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
    const isFold = event.key === (closed.has(line?.group ?? "") ? "ArrowRight" : "ArrowLeft");
    if (target !== undefined) move(target);
    else if (event.key === " " && line) select(position, event.shiftKey);
    else if (line && (event.key === "Enter" || (isFold && line.group !== null))) open(line);
    else return;
    event.preventDefault();
  };
  // One handler for all rows, so that they need no functions of their own.
  const click = (event: MouseEvent) => {
    const target = event.target as Element;
    const index = Number(target.closest<HTMLElement>("[data-line]")?.dataset.line ?? -1);
    const line = lines[index];
    if (!line || target.closest("a")) return;
    setActive(line.key);
    if (target.closest(".select")) select(index, event.shiftKey);
    else open(line);
  };

  const pool = visible + 2 * OVERSCAN + CHUNK + 1; // elements, which show another row when theirs is out of sight
  const from = Math.max(0, first - OVERSCAN);
  const to = Math.min(lines.length, first + visible + OVERSCAN + CHUNK);
  const isAway = position >= 0 && (position < from || position >= to); // the active row exists also out of sight
  const indices = Array.from({ length: to - from }, (_, index) => from + index).concat(isAway ? [position] : []);
  const track = ({ key, width }: Column) => (key === "name" ? `minmax(${isNarrow ? 0 : width}px, 1fr)` : `${width}px`);
  const style = {
    "--tracks": `34px ${columns.map(track).join(" ")}`,
    "--row": `${height}px`,
    "--width": isNarrow ? "0" : `${columns.reduce((sum, { width }) => sum + width, 48)}px`,
  };
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
      style={style as object}
      onKeyDown={press}
      onClick={click}
      onScroll={(event) => setFirst(Math.floor(event.currentTarget.scrollTop / height / CHUNK) * CHUNK)}
    >
      <div role="row" className="head" aria-rowindex={1}>
        <span role="columnheader">
          <span className="hidden">Selected</span>
        </span>
        {columns.map(({ key, title, hint, isNumber }) => (
          <span
            key={key}
            role="columnheader"
            aria-sort={sort.key === key ? (sort.descending ? "descending" : "ascending") : undefined}
            className={isNumber ? "number" : undefined}
          >
            <button type="button" title={hint} onClick={() => changeSort(key)}>
              {title}
              {sort.key === key && <i aria-hidden="true">{sort.descending ? " ↓" : " ↑"}</i>}
            </button>
          </span>
        ))}
      </div>
      <div role="rowgroup" className="lines" style={{ height: lines.length * height }}>
        {indices.map((index) => {
          const line = lines[index] as Line;
          return (
            <Row
              key={index < from || index >= to ? "active" : index % pool}
              index={index}
              runs={runs}
              line={line}
              columns={columns}
              isActive={index === position}
              isSelected={idsOf(line).every((id) => selected.has(id))}
              isClosed={line.group !== null && closed.has(line.group)}
            />
          );
        })}
      </div>
    </div>
  );
}

interface RowProperties extends Pick<Properties, "runs" | "columns"> {
  index: number;
  line: Line;
  isActive: boolean;
  isSelected: boolean;
  isClosed: boolean;
}

const Row = memo(function Row({ index, runs, line, columns, isActive, isSelected, isClosed }: RowProperties) {
  const isGroup = line.group !== null;
  return (
    <div
      role="row"
      id={`line-${line.key}`}
      data-line={index}
      className={`${isGroup ? "line of" : "line"}${isActive ? " active" : ""}`}
      aria-rowindex={index + 2}
      aria-selected={isSelected}
      aria-expanded={isGroup ? !isClosed : undefined}
      style={{ transform: `translateY(calc(${index} * var(--row)))` }}
    >
      <span role="gridcell" className="select">
        <i aria-hidden="true">{isSelected ? "☑" : "☐"}</i>
      </span>
      {isGroup ? (
        <Head line={line} runs={runs} isClosed={isClosed} />
      ) : (
        columns.map((column) => (
          <span key={column.key} role="gridcell" className={column.isNumber ? "number" : undefined}>
            {column.cell(line.rows[0] ?? 0)}
          </span>
        ))
      )}
    </div>
  );
});

function Head({ line, runs, isClosed }: { line: Line; runs: Runs; isClosed: boolean }) {
  const states = Map.groupBy(line.rows, (row) => runs.status[row] ?? "NotStarted");
  return (
    <span role="gridcell">
      <i aria-hidden="true">{isClosed ? "▸" : "▾"}</i> <b>{line.group}</b>{" "}
      <small>{count(line.rows.length, "run")}</small>
      {[...states].map(([status, rows]) => (
        <small key={status} className={`state ${status}`} title={status}>
          {SYMBOLS[status]} {rows.length}
        </small>
      ))}
    </span>
  );
}
