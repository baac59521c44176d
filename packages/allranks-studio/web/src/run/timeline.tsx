// When each step, each of its attempts and each rank ran. The time between two executions of a run has no width.
import { useState } from "react";
import type { Run, Status, Step } from "../api";
import { Button } from "../controls";
import { count, duration, tick } from "../format";
import { Empty, label, State } from "../parts";

const RANKS = 64; // more are not drawn one by one
const UNITS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400];

interface Properties {
  run: Run;
  now: number;
  selected: string | null;
  onSelect: (path: string) => void;
}

export function Timeline({ run, now, selected, onSelect }: Properties) {
  const [closed, setClosed] = useState<string[]>([]);
  const ran = run.steps.filter(({ started }) => started !== null);
  if (!ran.length) return <Empty title="No step has started yet" />;
  const start = Math.min(run.created, ...ran.map(({ started }) => started ?? now));
  const at = (moment: number) =>
    run.pauses.reduce((sum, [from, to]) => sum - Math.max(0, Math.min(to, moment) - from), moment - start);
  const end = Math.max(1e-3, ...ran.map(({ ended }) => at(ended ?? now)));
  const percent = (seconds: number) => `${Math.max(0, (seconds / end) * 100)}%`;
  const unit = UNITS.find((each) => end / each <= 8) ?? end / 8;
  const ticks = Array.from({ length: Math.floor((end * 0.95) / unit) + 1 }, (_, index) => index * unit);
  const bar = (kind: string, title: string, status: Status, from: number | null, to: number | null) => {
    if (from === null) return null;
    const [left, right] = [at(from), at(to ?? now)];
    const place = { left: percent(left), width: `max(2px, ${percent(right - left)})` };
    return (
      <i
        key={`${kind}${from}`}
        className={`${kind} ${status}`}
        style={place}
        title={`${title}: ${duration(right - left)}`}
      />
    );
  };
  const row = (step: Step) => {
    const { path, name, status, started, ended, ranks } = step;
    const first = Math.min(...ranks.map((rank) => rank.started ?? Number.POSITIVE_INFINITY));
    const isClosed = closed.includes(path);
    const toggle = () => setClosed(isClosed ? closed.filter((each) => each !== path) : [...closed, path]);
    const seconds = started === null ? null : (ended ?? now) - started;
    return (
      <li key={path} className={path === selected ? "selected" : undefined}>
        <div className="label" style={{ paddingLeft: (path.split(".").length - 1) * 14 }}>
          {run.steps.some(({ parent }) => parent === path) && (
            <Button
              text={isClosed ? "▸" : "▾"}
              className="plain"
              aria-expanded={!isClosed}
              name={`Steps of ${path}`}
              onClick={toggle}
            />
          )}
          <State status={status} short />
          <Button text={name} className="name" onClick={() => onSelect(path)} />
          <small>{step.reused_from ? "reused" : duration(seconds)}</small>
        </div>
        <div className="track">
          {step.earlier.map((each) =>
            bar("time", `earlier attempt, ${label(each.status)}`, each.status, each.started, each.ended),
          )}
          {!step.reused_from && bar("time", `${path}, ${label(status)}`, status, started, ended)}
          {!step.reused_from &&
            first > (started ?? first) &&
            bar("importing", "before the first rank started", status, started, first)}
          {ranks.length > 1 && ranks.length <= RANKS && (
            <div className="ranks">
              {ranks.map((rank) => (
                <div key={rank.rank}>
                  {bar(
                    "rank",
                    `rank ${rank.rank} on instance ${rank.instance}, ${label(rank.status)}`,
                    rank.status,
                    rank.started,
                    rank.ended,
                  )}
                </div>
              ))}
            </div>
          )}
          {ranks.length > RANKS && <small>{count(ranks.length, "rank")}</small>}
        </div>
      </li>
    );
  };
  const isShown = ({ path }: Step) =>
    !closed.some((each) => path.startsWith(`${each}.`) || path.startsWith(`${each}[`));
  return (
    <div className="timeline">
      <div className="axis" aria-hidden="true">
        <div>
          {ticks.map((each) => (
            <span key={each} style={{ left: percent(each) }}>
              {each ? tick(each) : "0"}
            </span>
          ))}
        </div>
      </div>
      <ul>{run.steps.filter(isShown).map(row)}</ul>
      <p className="soft">
        The lighter part of a bar is importing: the time before the first rank of the step started.
      </p>
    </div>
  );
}
