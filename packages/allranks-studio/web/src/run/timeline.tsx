// When each step, each of its attempts and each rank ran. The time between two executions of a run has no width.
import { useState } from "react";
import type { Execution, Step } from "../api";
import { Button } from "../controls";
import { count, duration, SECONDS, tick } from "../format";
import { Empty, label, State, useMedia } from "../parts";
import type { Overview } from "./graph";

const RANKS = 64; // more are not drawn one by one

export function Timeline({ run, now, selected, onSelect }: Overview) {
  const [closed, setClosed] = useState<string[]>([]);
  const isNarrow = useMedia("(max-width: 600px)");
  const ran = run.steps.filter(({ started }) => started !== null);
  if (!ran.length) return <Empty title="No step has started yet" />;
  const start = Math.min(run.created, ...ran.map(({ started }) => started ?? now));
  const at = (moment: number) =>
    run.pauses.reduce((sum, [from, to]) => sum - Math.max(0, Math.min(to, moment) - from), moment - start);
  const end = Math.max(1e-3, ...ran.map(({ ended }) => at(ended ?? now)));
  const percent = (seconds: number) => `${Math.max(0, (seconds / end) * 100)}%`;
  const most = isNarrow ? 3 : 8; // ticks
  const unit = SECONDS.find((each) => end / each <= most) ?? end / most;
  const ticks = Array.from({ length: Math.floor((end * 0.95) / unit) + 1 }, (_, index) => index * unit);
  const bar = (kind: string, { status, started, ended }: Execution, what: string) => {
    if (started === null) return null;
    const [left, right] = [at(started), at(ended ?? now)];
    const style = { left: percent(left), width: `max(2px, ${percent(right - left)})` };
    const title = `${what}: ${duration(right - left)}`;
    return <i key={`${kind}${started}`} className={`${kind} ${status}`} style={style} title={title} />;
  };
  const bars = (step: Step) => {
    const { path, earlier, ranks, status } = step;
    const attempts = earlier.map((each) => bar("time", each, `earlier attempt, ${label(each.status)}`));
    if (step.reused_from) return attempts;
    const begin = Math.min(...ranks.map((rank) => rank.started ?? Number.POSITIVE_INFINITY));
    const isImporting = ranks.length > 0 && begin > (step.started ?? begin);
    const imported = { ...step, ended: Number.isFinite(begin) ? begin : step.ended };
    return [
      ...attempts,
      bar("time", step, `${path}, ${label(status)}`),
      isImporting && bar("importing", imported, "before the first rank started"),
    ];
  };
  const row = (step: Step) => {
    const { path, name, ranks } = step;
    const isClosed = closed.includes(path);
    const toggle = () => setClosed(isClosed ? closed.filter((each) => each !== path) : [...closed, path]);
    const seconds = step.started === null ? null : (step.ended ?? now) - step.started;
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
          <State status={step.status} short />
          <Button text={name} className="name" onClick={() => onSelect(path)} />
          <small>{step.reused_from ? "reused" : duration(seconds)}</small>
        </div>
        <div className="track">
          {bars(step)}
          {ranks.length > RANKS && <small>{count(ranks.length, "rank")}</small>}
          {ranks.length > 1 && ranks.length <= RANKS && (
            <div className="ranks">
              {ranks.map((each) => (
                <div key={each.rank}>
                  {bar("rank", each, `rank ${each.rank} on instance ${each.instance}, ${label(each.status)}`)}
                </div>
              ))}
            </div>
          )}
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
      <p className="soft">The faint part of a bar is importing: the time before the first rank of the step started.</p>
    </div>
  );
}
