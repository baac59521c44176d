// biome-ignore-all lint/a11y/useSemanticElements: SVG has no groups with names and no buttons
// The graphs of a run. Nodes that contain others have theirs below, folded.
import { type KeyboardEvent, useState } from "react";
import { type Run, type Step, SYMBOLS } from "../api";
import { count, duration, number } from "../format";
import { isActive, label, State } from "../parts";

const [WIDTH, HEIGHT] = [200, 64]; // the server's positions are for these boxes
const MOST_DRAWN = 200;

// What the graph and the timeline are drawn from.
export interface Overview {
  run: Run;
  now: number;
  selected: string | null;
  onSelect: (path: string) => void;
}

export function Graph(properties: Overview) {
  return (
    <div className="graphs">
      <svg className="defs" width="0" height="0" aria-hidden="true">
        <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
          <path d="M0 0.5L8 4L0 7.5z" />
        </marker>
      </svg>
      <Scope {...properties} parent="" />
    </div>
  );
}

function Scope({ parent, ...properties }: Overview & { parent: string }) {
  const steps = properties.run.steps.filter((step) => step.parent === parent);
  const isList = steps.length > MOST_DRAWN || steps.every(({ name }) => name.endsWith("]"));
  const groups = steps.filter(({ path }) => properties.run.steps.some((step) => step.parent === path));
  return (
    <>
      {isList ? <List {...properties} steps={steps} /> : <Picture {...properties} parent={parent} steps={steps} />}
      {groups.map((step) => (
        <Group key={step.path} {...properties} step={step} />
      ))}
    </>
  );
}

function Group({ step, ...properties }: Overview & { step: Step }) {
  const [isOpen, setIsOpen] = useState(step.status === "Failed" || step.status === "Running");
  return (
    <details className="scope" open={isOpen} onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>
        <State status={step.status} short /> <b>{step.path}</b> <small>{about(step, properties.now)}</small>
      </summary>
      {isOpen && <Scope {...properties} parent={step.path} />}
    </details>
  );
}

function Picture({ parent, steps, ...overview }: Overview & { parent: string; steps: Step[] }) {
  const { run } = overview;
  const places: Places = new Map(steps.map(({ path }) => [path, run.positions[path] ?? [0, 0]]));
  const edges = run.edges.filter(({ from, to }) => places.has(from) && places.has(to));
  const width = Math.max(...[...places.values()].map(([x]) => x)) + WIDTH + 8;
  const height = Math.max(...[...places.values()].map(([, y]) => y)) + HEIGHT + 8;
  const isSkipped = (path: string) => steps.some((step) => step.path === path && step.status === "Skipped");
  const name = `Steps of ${parent || run.name}`;
  return (
    <div className="picture">
      <svg width={width} height={height} viewBox={`-2 -2 ${width} ${height}`} role="group" aria-label={name}>
        {edges.map(({ from, to, label: branch }) => {
          const [x, y] = places.get(to) ?? [0, 0];
          return (
            <g key={`${from}\n${to}`} className={branch && isSkipped(to) ? "edge untaken" : "edge"}>
              <path d={pathOf(from, to, places)} markerEnd="url(#arrow)" />
              <text x={x - 10} y={y + HEIGHT / 2 - 6} textAnchor="end">
                {branch}
              </text>
            </g>
          );
        })}
        {steps.map((step) => (
          <Box key={step.path} {...overview} step={step} />
        ))}
      </svg>
    </div>
  );
}

function Box({ run, now, selected, onSelect, step }: Overview & { step: Step }) {
  const first = about(step, now);
  const second = [isActive(step.status) && step.progress, metricOf(step)].filter(Boolean).join(" · ");
  const box = { className: "box", width: WIDTH, height: HEIGHT, rx: step.kind === "condition" ? HEIGHT / 2 : 6 };
  const press = (event: KeyboardEvent) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    onSelect(step.path);
  };
  return (
    <g
      role="button"
      tabIndex={0}
      aria-pressed={step.path === selected}
      className={`node ${step.status}${step.reused_from ? " reused" : ""}`}
      transform={`translate(${run.positions[step.path]?.join(" ") ?? "0 0"})`}
      onClick={() => onSelect(step.path)}
      onKeyDown={press}
    >
      {run.steps.some(({ parent }) => parent === step.path) && <rect {...box} x="4" y="4" />}
      <rect {...box} className="box cover" />
      <rect {...box} />
      <text className="symbol" x="12" y="22">
        {SYMBOLS[step.status]}
      </text>
      <text className="name" x="28" y="22">
        {shorten(step.name, 21)}
      </text>
      <text className="what" x="28" y="38">
        {shorten(first, 27)}
      </text>
      <text className="what" x="28" y="54">
        {shorten(second, 27)}
      </text>
      <title>{`${step.path}: ${label(step.status)}, ${first}`}</title>
    </g>
  );
}

type Places = Map<string, [number, number]>; // the upper left corners of boxes

// Return a curve from the right side of a box to the left side of another, which passes between the boxes on its way.
function pathOf(from: string, to: string, places: Places): string {
  const [startX, startY] = places.get(from) ?? [0, 0];
  const [endX, endY] = places.get(to) ?? [0, 0];
  let [x, y] = [startX + WIDTH, startY + HEIGHT / 2];
  const path = [`M${x} ${y}`];
  const curve = (toX: number, toY: number) => {
    const middle = (x + toX) / 2;
    path.push(`C${middle} ${y} ${middle} ${toY} ${toX} ${toY}`);
    [x, y] = [toX, toY];
  };
  const boxes = [...places.values()];
  const between = [...new Set(boxes.map(([left]) => left))].filter((left) => left >= x && left + WIDTH <= endX);
  for (const left of between.sort((one, other) => one - other)) {
    const column = boxes.filter((place) => place[0] === left).map(([, top]) => top);
    const straight = startY + HEIGHT / 2 + ((endY - startY) * (left - startX)) / (endX - startX);
    const isFree = (at: number) => column.every((top) => at < top - 6 || at > top + HEIGHT + 6);
    const gaps = [straight, ...column.flatMap((top) => [top - 10, top + HEIGHT + 10])].filter(isFree);
    const distance = (at: number) => Math.abs(at - straight);
    curve(left, gaps.sort((one, other) => distance(one) - distance(other))[0] ?? straight);
    x = left + WIDTH;
    path.push(`L${x} ${y}`);
  }
  curve(endX - 1, endY + HEIGHT / 2);
  return path.join("");
}

// The iterations of a loop, or a scope that is too large for a graph.
function List({ now, selected, onSelect, steps }: Overview & { steps: Step[] }) {
  return (
    <ul className="cells">
      {steps.map((step) => (
        <li key={step.path}>
          <button
            type="button"
            className={step.status}
            aria-pressed={step.path === selected}
            title={about(step, now)}
            onClick={() => onSelect(step.path)}
          >
            <State status={step.status} short /> {step.name} <small>{metricOf(step)}</small>
          </button>
        </li>
      ))}
    </ul>
  );
}

// What a node's second line says.
function about(step: Step, now: number): string {
  const end = step.ended ?? (isActive(step.status) ? now : step.started);
  const seconds = step.started === null || end === null ? null : end - step.started;
  const parts = [step.layout, step.reused_from ? "reused" : duration(seconds)];
  if (step.attempts > 1) parts.push(count(step.attempts, "attempt"));
  return parts.filter(Boolean).join(" · ");
}

function metricOf(step: Step): string {
  const [metric] = Object.entries(step.metrics);
  return metric ? `${shorten(metric[0], 18)} ${number(metric[1])}` : "";
}

const shorten = (text: string, length: number) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);
