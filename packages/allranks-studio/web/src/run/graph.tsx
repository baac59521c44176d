// biome-ignore-all lint/a11y/useSemanticElements: SVG has no groups with names and no buttons
// The graphs of a run. Nodes that contain others have theirs below, folded.
import { useState } from "react";
import type { Run, Step } from "../api";
import { count, duration, number } from "../format";
import { isActive, label, State, symbol } from "../parts";

const [WIDTH, HEIGHT] = [200, 64]; // the server's positions are for these boxes
const MOST_DRAWN = 200;

type Places = Map<string, [number, number]>; // the upper left corners of boxes

interface Properties {
  run: Run;
  now: number;
  selected: string | null;
  onSelect: (path: string) => void;
}

export function Graph(properties: Properties) {
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

function Scope({ parent, ...properties }: Properties & { parent: string }) {
  const { run } = properties;
  const steps = run.steps.filter((step) => step.parent === parent);
  const isLoop = steps.every(({ name }) => name.endsWith("]"));
  const groups = steps.filter(({ path }) => run.steps.some((step) => step.parent === path));
  return (
    <>
      {isLoop || steps.length > MOST_DRAWN ? (
        <List {...properties} steps={steps} />
      ) : (
        <Picture {...properties} parent={parent} steps={steps} />
      )}
      {groups.map((step) => (
        <Group key={step.path} {...properties} step={step} />
      ))}
    </>
  );
}

function Group({ step, ...properties }: Properties & { step: Step }) {
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

function Picture({ run, now, selected, onSelect, parent, steps }: Properties & { parent: string; steps: Step[] }) {
  const places: Places = new Map(steps.map(({ path }) => [path, run.positions[path] ?? [0, 0]]));
  const edges = run.edges.filter(({ from, to }) => places.has(from) && places.has(to));
  const width = Math.max(...[...places.values()].map(([x]) => x)) + WIDTH + 8;
  const height = Math.max(...[...places.values()].map(([, y]) => y)) + HEIGHT + 8;
  return (
    <div className="picture">
      <svg
        width={width}
        height={height}
        viewBox={`-2 -2 ${width} ${height}`}
        role="group"
        aria-label={`Steps of ${parent || run.name}`}
      >
        {edges.map(({ from, to, label: text }) => {
          const [x, y] = places.get(to) ?? [0, 0];
          const isLeft = run.steps.find(({ path }) => path === to)?.status === "Skipped";
          return (
            <g key={`${from}\n${to}`} className={text && isLeft ? "edge untaken" : "edge"}>
              <path d={pathOf(from, to, places)} markerEnd="url(#arrow)" />
              {text && (
                <text x={x - 10} y={y + HEIGHT / 2 - 6} textAnchor="end">
                  {text}
                </text>
              )}
            </g>
          );
        })}
        {steps.map((step) => {
          const [x, y] = places.get(step.path) ?? [0, 0];
          const [metric] = Object.entries(step.metrics);
          const isGroup = run.steps.some(({ parent }) => parent === step.path);
          return (
            <g
              key={step.path}
              role="button"
              tabIndex={0}
              aria-pressed={step.path === selected}
              className={`node ${step.status}${step.reused_from ? " reused" : ""}`}
              transform={`translate(${x} ${y})`}
              onClick={() => onSelect(step.path)}
              onKeyDown={(event) => {
                if (event.key !== "Enter" && event.key !== " ") return;
                event.preventDefault();
                onSelect(step.path);
              }}
            >
              {isGroup && <rect className="box" x="4" y="4" width={WIDTH} height={HEIGHT} rx="6" />}
              <rect
                className="box cover"
                width={WIDTH}
                height={HEIGHT}
                rx={step.kind === "condition" ? HEIGHT / 2 : 6}
              />
              <rect className="box" width={WIDTH} height={HEIGHT} rx={step.kind === "condition" ? HEIGHT / 2 : 6} />
              <text className="symbol" x="12" y="22">
                {symbol(step.status)}
              </text>
              <text className="name" x="28" y="22">
                {shorten(step.name, 21)}
              </text>
              <text className="what" x="28" y="38">
                {shorten(about(step, now), 28)}
              </text>
              {metric && (
                <text className="what" x="28" y="54">
                  {shorten(metric[0], 18)} {number(metric[1])}
                </text>
              )}
              <title>{`${step.path}: ${label(step.status)}, ${about(step, now)}`}</title>
            </g>
          );
        })}
      </svg>
    </div>
  );
}

// Return a curve from the right side of a box to the left side of another, which passes between the boxes on its way.
function pathOf(from: string, to: string, places: Places): string {
  const [startX, startY] = places.get(from) ?? [0, 0];
  const [endX, endY] = places.get(to) ?? [0, 0];
  let [x, y] = [startX + WIDTH, startY + HEIGHT / 2];
  const [lastX, lastY] = [endX - 1, endY + HEIGHT / 2];
  const path = [`M${x} ${y}`];
  const curve = (toX: number, toY: number) => {
    const middle = (x + toX) / 2;
    path.push(`C${middle} ${y} ${middle} ${toY} ${toX} ${toY}`);
    [x, y] = [toX, toY];
  };
  const between = [...new Set([...places.values()].map(([left]) => left))].filter(
    (left) => left >= startX + WIDTH && left + WIDTH <= endX,
  );
  for (const left of between.sort((one, other) => one - other)) {
    const column = [...places.values()].filter((place) => place[0] === left).map(([, top]) => top);
    const straight = startY + HEIGHT / 2 + ((lastY - startY - HEIGHT / 2) * (left - startX)) / (endX - startX);
    const isFree = (at: number) => column.every((top) => at < top - 6 || at > top + HEIGHT + 6);
    const gaps = [straight, ...column.flatMap((top) => [top - 10, top + HEIGHT + 10])].filter(isFree);
    const nearest = gaps.sort((one, other) => Math.abs(one - straight) - Math.abs(other - straight))[0] ?? straight;
    curve(left, nearest);
    path.push(`L${left + WIDTH} ${nearest}`);
    x = left + WIDTH;
  }
  curve(lastX, lastY);
  return path.join("");
}

// The iterations of a loop, or a scope that is too large for a graph.
function List({ now, selected, onSelect, steps }: Properties & { steps: Step[] }) {
  return (
    <ul className="cells">
      {steps.map((step) => {
        const [metric] = Object.entries(step.metrics);
        return (
          <li key={step.path}>
            <button
              type="button"
              className={step.status}
              aria-pressed={step.path === selected}
              title={`${step.path}: ${label(step.status)}, ${about(step, now)}`}
              onClick={() => onSelect(step.path)}
            >
              <span className="state" aria-hidden="true">
                {symbol(step.status)}
              </span>
              <span className="hidden">{label(step.status)}</span> {step.name}
              {metric && (
                <small>
                  {metric[0]} {number(metric[1])}
                </small>
              )}
            </button>
          </li>
        );
      })}
    </ul>
  );
}

// What a node's second line says.
export function about(step: Step, now: number): string {
  const seconds =
    step.started === null ? null : (step.ended ?? (isActive(step.status) ? now : step.started)) - step.started;
  const parts = [step.layout, step.reused_from ? "reused" : duration(seconds)];
  if (step.progress && isActive(step.status)) parts.push(step.progress);
  if (step.attempts > 1) parts.push(count(step.attempts, "attempt"));
  return parts.filter(Boolean).join(" · ");
}

const shorten = (text: string, length: number) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);
