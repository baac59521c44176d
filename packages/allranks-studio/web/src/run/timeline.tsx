// When each step, each of its attempts and each rank ran. The time between two executions of a run has no width.
import { useState } from "react";
import type { Run, Status, Step } from "../api";
import { count, duration } from "../format";
import { Empty, label, symbol } from "../parts";

const RANKS = 64; // more are not drawn one by one
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400];

interface Properties {
  run: Run;
  now: number;
  selected: string | null;
  onSelect: (path: string) => void;
}

export function Timeline({ run, now, selected, onSelect }: Properties) {
  const [closed, setClosed] = useState<Set<string>>(new Set());
  const ran = run.steps.filter(({ started }) => started !== null);
  if (!ran.length) return <Empty title="No step has started yet" />;
  const start = Math.min(run.created, ...ran.map(({ started }) => started ?? now));
  const at = (moment: number) => {
    const paused = run.pauses.map(([from, to]) => (moment > from ? Math.min(to, moment) - from : 0));
    return moment - start - paused.reduce((sum, each) => sum + each, 0);
  };
  const end = Math.max(1e-3, ...ran.map(({ ended }) => at(ended ?? now)));
  const percent = (seconds: number) => `${Math.max(0, (seconds / end) * 100)}%`;
  const unit = STEPS.find((each) => end / each <= 8) ?? end / 8;
  const ticks = Array.from({ length: Math.floor((end * 0.95) / unit) + 1 }, (_, index) => index * unit);
  const parents = new Set(run.steps.map(({ parent }) => parent));
  const isHidden = (step: Step): boolean => {
    const parent = run.steps.find(({ path }) => path === step.parent);
    return parent !== undefined && (closed.has(parent.path) || isHidden(parent));
  };
  const bar = (key: string, status: Status, from: number, to: number, title: string, kind: string) => {
    const [left, right] = [at(from), at(to)];
    const place = { left: percent(left), width: `max(2px, ${percent(right - left)})` };
    return <i key={key} className={`${kind} ${status}`} style={place} title={`${title}: ${duration(right - left)}`} />;
  };
  const toggle = (path: string) =>
    setClosed((before) =>
      before.has(path) ? new Set([...before].filter((each) => each !== path)) : new Set([...before, path]),
    );
  return (
    <div className="timeline">
      <div className="axis" aria-hidden="true">
        <div>
          {ticks.map((tick) => (
            <span key={tick} style={{ left: percent(tick) }}>
              {tick
                ? duration(tick)
                    .replace(".0", "")
                    .replace(/ 0 (s|min|h)$/, "")
                : "0"}
            </span>
          ))}
        </div>
      </div>
      <ul>
        {run.steps
          .filter((step) => !isHidden(step))
          .map((step) => {
            const seconds = step.started === null || step.reused_from ? null : (step.ended ?? now) - step.started;
            const isGroup = parents.has(step.path);
            const first = Math.min(...step.ranks.map(({ started }) => started ?? Number.POSITIVE_INFINITY));
            return (
              <li key={step.path} className={step.path === selected ? "selected" : undefined}>
                <div className="label" style={{ paddingLeft: (step.path.split(".").length - 1) * 14 }}>
                  {isGroup && (
                    <button
                      type="button"
                      className="plain"
                      aria-expanded={!closed.has(step.path)}
                      aria-label={`Steps of ${step.path}`}
                      onClick={() => toggle(step.path)}
                    >
                      {closed.has(step.path) ? "▸" : "▾"}
                    </button>
                  )}
                  <span className={`state ${step.status}`} title={label(step.status)}>
                    {symbol(step.status)}
                  </span>{" "}
                  <button type="button" className="name" onClick={() => onSelect(step.path)}>
                    {step.name}
                  </button>
                  <small>{step.reused_from ? "reused" : duration(seconds)}</small>
                </div>
                <div className="track">
                  {step.earlier.map((each, index) =>
                    bar(
                      `e${index}`,
                      each.status,
                      each.started,
                      each.ended,
                      `attempt ${index + 1}, ${label(each.status)}`,
                      "time",
                    ),
                  )}
                  {step.started !== null &&
                    !step.reused_from &&
                    bar(
                      "s",
                      step.status,
                      step.started,
                      step.ended ?? now,
                      `${step.path}, ${label(step.status)}`,
                      "time",
                    )}
                  {step.started !== null &&
                    Number.isFinite(first) &&
                    first > step.started &&
                    bar("i", step.status, step.started, first, "before the first rank started", "importing")}
                  {step.ranks.length > 1 && step.ranks.length <= RANKS && (
                    <div className="ranks">
                      {step.ranks
                        .filter(({ started }) => started !== null)
                        .map((rank) => (
                          <div key={rank.rank}>
                            {bar(
                              "r",
                              rank.status,
                              rank.started ?? 0,
                              rank.ended ?? now,
                              `rank ${rank.rank} on instance ${rank.instance}, ${label(rank.status)}`,
                              "rank",
                            )}
                          </div>
                        ))}
                    </div>
                  )}
                  {step.ranks.length > RANKS && <small>{count(step.ranks.length, "rank")}</small>}
                </div>
              </li>
            );
          })}
      </ul>
      <p className="soft">
        The lighter part of a bar is importing: the time before the first rank of the step started.
      </p>
    </div>
  );
}
