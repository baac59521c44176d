// A run: its state, why it failed, and its graph, timeline, curves, resources and logs, live while it is running.
import type { ReactNode } from "react";
import type { Folder, Run, Verdict } from "../api";
import { count, duration, when } from "../format";
import { Later } from "../later";
import { Empty, harmless, isActive, Loading, Problem, State, Tabs, useNow } from "../parts";
import { setQuery, useAddress, view } from "../router";
import { useServer } from "../server";
import { Actions } from "./actions";
import { RunDetails, StepDetails } from "./details";
import { Graph } from "./graph";
import { Logs } from "./logs";
import { Timeline } from "./timeline";

// With uPlot, which the other views do not need.
const CURVES = () => import("./curves");
const RESOURCES = () => import("./resources");

const TABS = ["Graph", "Timeline", "Curves", "Resources", "Logs"];

export default function RunView({ folder, id, tab }: { folder: Folder; id: string; tab: string }) {
  const { data: run, error } = useServer<Run>(`/api/runs/${encodeURIComponent(id)}`, { folder: folder.id }, (event) => {
    if (!("run" in event) || event.run !== id || event.kind === "log") return false;
    return event.kind === "points" ? 5000 : 300;
  });
  const now = useNow(run !== null && isActive(run.status));
  const selected = useAddress().query.get("step");
  if (!run) return error ? <Problem error={error} /> : <Loading />;
  const step = run.steps.find(({ path }) => path === selected);
  const tabs = TABS.map((title): [string, string] => [
    title,
    view(["runs", id, title.toLowerCase()], { step: step?.path }),
  ]);
  const onSelect = (path: string) => setQuery({ step: path === selected ? undefined : path });
  const views: Record<string, () => ReactNode> = {
    graph: () => <Graph run={run} now={now} selected={selected} onSelect={onSelect} />,
    timeline: () => <Timeline run={run} now={now} selected={selected} onSelect={onSelect} />,
    curves: () => <Later key="curves" load={CURVES} properties={{ folder, run: id, step: step?.path }} />,
    resources: () => <Later key="resources" load={RESOURCES} properties={{ folder, run }} />,
    logs: () => <Logs folder={folder} run={run} />,
  };
  const shown = views[tab]?.() ?? <Empty title="There is no such view of a run" />;
  const isOverview = tab === "graph" || tab === "timeline";
  return (
    <div className="run">
      <Header folder={folder} run={run} now={now} />
      <Tabs name="Views of the run" tabs={tabs} selected={TABS.find((title) => title.toLowerCase() === tab) ?? ""} />
      <div className="content">
        {run.verdict && isOverview && <Failure run={run} verdict={run.verdict} />}
        {isOverview ? (
          <div className="split">
            {shown}
            {step ? (
              <StepDetails folder={folder} run={run} step={step} now={now} />
            ) : (
              <RunDetails folder={folder} run={run} />
            )}
          </div>
        ) : (
          shown
        )}
      </div>
    </div>
  );
}

function Header({ folder, run, now }: { folder: Folder; run: Run; now: number }) {
  const isFile = run.source !== "" && !run.source.startsWith("/");
  return (
    <header className="head">
      <div>
        <h1>{run.name}</h1>
        <p className="lead">
          <State status={run.status} />
          <span>{duration(isActive(run.status) ? Math.max(0, now - run.created) : run.seconds)}</span>
          <span>{when(run.created)}</span>
          <span>
            run <code>{run.id}</code>
          </span>
          {isFile ? (
            <a href={view(["designer"], { path: run.source.split(":")[0] })}>{run.source}</a>
          ) : (
            <span>{run.source}</span>
          )}
          <span>{count(run.steps.filter(({ kind }) => kind === "command").length, "step")}</span>
        </p>
      </div>
      <Actions folder={folder} run={run} />
    </header>
  );
}

function Failure({ run, verdict }: { run: Run; verdict: Verdict }) {
  const { step, rank, reason, where, advice, code, consequences, tail, traceback } = verdict;
  const end = traceback.trim().split("\n").slice(-3).join("\n");
  return (
    <section className="verdict" aria-label="Why the run failed">
      <h2>{step} failed</h2>
      <p className="reason">{harmless(reason)}</p>
      {where && !reason.includes(where) && <p className="soft">at {where}</p>}
      {advice && (
        <p>
          {advice} {code && <small>More: allranks why {code}</small>}
        </p>
      )}
      {consequences.length > 0 && <p className="soft">Then: {consequences.join("; ")}</p>}
      <p className="links">
        <a href={view(["runs", run.id, "logs"], { step, rank: rank ?? undefined })}>Open the log</a>
      </p>
      {tail.length > 0 && (
        <Lines title={`The last ${count(tail.length, "line")} of the log`} text={tail.join("\n")} isOpen />
      )}
      {traceback && !tail.join("\n").includes(end) && <Lines title="Traceback" text={traceback} />}
    </section>
  );
}

function Lines({ title, text, isOpen = false }: { title: string; text: string; isOpen?: boolean }) {
  return (
    <details open={isOpen}>
      <summary>{title}</summary>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled by keyboard */}
      <pre tabIndex={0}>{harmless(text)}</pre>
    </details>
  );
}
