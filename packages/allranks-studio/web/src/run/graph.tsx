// biome-ignore-all lint/a11y/useSemanticElements: SVG has no groups with names and no buttons
// The graphs of a run. Nodes that contain others have theirs below, folded.
import { type KeyboardEvent, useState } from "react";
import { type Run, type Step, SYMBOLS } from "../api";
import { count, duration, number } from "../format";
import { isActive, label, State } from "../parts";
import { detour, wirePath } from "../wires";

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
  const boxes = new Map(steps.map(({ path }) => [path, boxAt(run.positions[path])]));
  const width = Math.max(...[...boxes.values()].map(({ left }) => left)) + WIDTH + 8;
  const height = Math.max(...[...boxes.values()].map(({ top }) => top)) + HEIGHT + 8;
  const isSkipped = (path: string) => steps.some((step) => step.path === path && step.status === "Skipped");
  const name = `Steps of ${parent || run.name}`;
  return (
    <div className="picture">
      <svg width={width} height={height} viewBox={`-2 -2 ${width} ${height}`} role="group" aria-label={name}>
        {run.edges.map(({ from, to, label: branch }) => {
          const [source, target] = [boxes.get(from), boxes.get(to)];
          if (!source || !target) return null;
          const [x, y] = [target.left - 1, target.top + HEIGHT / 2];
          const way = detour(source, target, [...boxes.values()]);
          return (
            <g key={`${from}\n${to}`} className={branch && isSkipped(to) ? "edge untaken" : "edge"}>
              <path d={wirePath([source.left + WIDTH, source.top + HEIGHT / 2], [x, y], way)} markerEnd="url(#arrow)" />
              <text x={x - 9} y={y - 6} textAnchor="end">
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

const boxAt = ([left, top] = [0, 0]) => ({ left, top, width: WIDTH, height: HEIGHT });

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
