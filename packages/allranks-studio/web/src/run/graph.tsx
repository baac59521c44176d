// biome-ignore-all lint/a11y/useSemanticElements: SVG has no groups with names and no buttons
// The graphs of a run as the run page draws them. Nodes that contain others have theirs below, folded.
import { useState } from "react";
import type { Run, RunGraph, Step } from "../api";
import { count, duration, number } from "../format";
import { isActive, label, State, symbol } from "../parts";

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
  const graph = run.graphs.find((each) => each.parent === parent);
  const groups = steps.filter(({ path }) => run.steps.some((step) => step.parent === path));
  return (
    <>
      {graph ? <Picture {...properties} graph={graph} steps={steps} /> : <List {...properties} steps={steps} />}
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

function Picture({ run, now, selected, onSelect, graph, steps }: Properties & { graph: RunGraph; steps: Step[] }) {
  const [width, height] = graph.box;
  const isSmall = height < 40;
  return (
    <div className="picture">
      <svg
        width={graph.width + 6}
        height={graph.height + 6}
        viewBox={`0 0 ${graph.width + 6} ${graph.height + 6}`}
        role="group"
        aria-label={`Steps of ${graph.parent || run.name}`}
      >
        {graph.edges.map((edge) => (
          <g key={`${edge.from}\n${edge.to}`} className={edge.taken ? "edge" : "edge untaken"}>
            <path d={edge.path} markerEnd="url(#arrow)" />
            {edge.label && (
              <text x={edge.x} y={edge.y} textAnchor="end">
                {edge.label}
              </text>
            )}
          </g>
        ))}
        {steps.map((step) => {
          const [x, y] = graph.nodes[step.path] ?? [0, 0];
          const name = shorten(step.name, isSmall ? 14 : 18);
          const what = isSmall ? "" : shorten(about(step, now), 23);
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
              {isGroup && <rect className="box" x="4" y="4" width={width} height={height} rx="6" />}
              <rect
                className="box cover"
                width={width}
                height={height}
                rx={step.kind === "condition" ? height / 2 : 6}
              />
              <rect className="box" width={width} height={height} rx={step.kind === "condition" ? height / 2 : 6} />
              <text className="symbol" x="12" y={isSmall ? 17 : 21}>
                {symbol(step.status)}
              </text>
              <text className="name" x="28" y={isSmall ? 17 : 21}>
                {name}
              </text>
              {what && (
                <text className="what" x="28" y="38">
                  {what}
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
