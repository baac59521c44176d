// A run: its state, why it failed, and its graph, timeline, curves, resources and logs, live while it is running.
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
  const { data, error } = useServer<Run>(`/api/runs/${encodeURIComponent(id)}`, { folder: folder.id }, (event) => {
    if (!("run" in event) || event.run !== id || event.kind === "log") return false;
    return event.kind === "points" ? 3000 : 300;
  });
  const now = useNow(data !== null && isActive(data.status));
  const selected = useAddress().query.get("step");
  if (!data) return error ? <Problem error={error} /> : <Loading />;
  const title = TABS.find((each) => each.toLowerCase() === tab) ?? "";
  const step = data.steps.find(({ path }) => path === selected);
  const query = step ? { step: step.path } : {};
  const tabs = TABS.map((each): [string, string] => [each, view(["runs", id, each.toLowerCase()], query)]);
  const details = step ? (
    <StepDetails folder={folder} run={data} step={step} now={now} />
  ) : (
    <RunDetails folder={folder} run={data} />
  );
  const select = (path: string) => setQuery({ step: path === selected ? undefined : path });
  return (
    <div className="run">
      <Header folder={folder} run={data} now={now} />
      <Tabs name="Views of the run" tabs={tabs} selected={title} />
      <div className="content">
        {data.verdict && (tab === "graph" || tab === "timeline") && <Failure run={data} verdict={data.verdict} />}

        {tab === "graph" && (
          <div className="split">
            <Graph run={data} now={now} selected={selected} onSelect={select} />
            {details}
          </div>
        )}
        {tab === "timeline" && (
          <div className="split">
            <Timeline run={data} now={now} selected={selected} onSelect={select} />
            {details}
          </div>
        )}
        {tab === "curves" && <Later load={CURVES} properties={{ folder, run: id, step: step?.path }} />}
        {tab === "resources" && <Later load={RESOURCES} properties={{ folder, run: data }} />}
        {tab === "logs" && <Logs folder={folder} run={data} />}

        {!title && <Empty title="There is no such view of a run" />}
      </div>
    </div>
  );
}

function Header({ folder, run, now }: { folder: Folder; run: Run; now: number }) {
  const seconds = isActive(run.status) && run.started !== null ? now - run.created : run.seconds;
  const isFile = run.source !== "" && !run.source.startsWith("/");
  return (
    <header className="head">
      <div>
        <h1>{run.name}</h1>
        <p className="lead">
          <State status={run.status} />
          <span>{duration(seconds)}</span>
          <span>{when(run.created)}</span>
          <span>
            run <code>{run.id}</code>
          </span>
          {run.source && (
            <span>
              {isFile ? <a href={view(["designer"], { path: run.source.split(":")[0] })}>{run.source}</a> : run.source}
            </span>
          )}
          <span>{count(run.steps.filter(({ kind }) => kind === "command").length, "step")}</span>
        </p>
      </div>
      <Actions folder={folder} run={run} />
    </header>
  );
}

function Failure({ run, verdict }: { run: Run; verdict: Verdict }) {
  const log = view(["runs", run.id, "logs"], { step: verdict.step, rank: verdict.rank ?? undefined });
  return (
    <section className="verdict" aria-label="Why the run failed">
      <h2>{verdict.step} failed</h2>
      <p className="reason">{harmless(verdict.reason)}</p>
      {verdict.where && !verdict.reason.includes(verdict.where) && <p className="soft">at {verdict.where}</p>}
      {verdict.advice && (
        <p>
          {verdict.advice} {verdict.code && <small>More: allranks why {verdict.code}</small>}
        </p>
      )}
      {verdict.consequences.length > 0 && <p className="soft">Then: {verdict.consequences.join("; ")}</p>}
      <p className="links">
        <a href={log}>Open the log</a>
        {verdict.rank !== null && (
          <a href={view(["runs", run.id, "logs"], { step: verdict.step })}>Logs of all ranks</a>
        )}
      </p>
      {verdict.tail.length > 0 && (
        <details open>
          <summary>The last {count(verdict.tail.length, "line")} of the log</summary>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled by keyboard */}
          <pre tabIndex={0}>{harmless(verdict.tail.join("\n"))}</pre>
        </details>
      )}
      {verdict.traceback &&
        !verdict.tail.join("\n").includes(verdict.traceback.trim().split("\n").slice(-3).join("\n")) && (
          <details>
            <summary>Traceback</summary>
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled by keyboard */}
            <pre tabIndex={0}>{harmless(verdict.traceback)}</pre>
          </details>
        )}
    </section>
  );
}
