// A run: its state, why it failed, and its graph, timeline, curves, resources and logs, live while it is running.
import type { Folder, Run, Verdict } from "../api";
import { count, duration, when } from "../format";
import { Empty, Folded, harmless, isActive, Loading, Problem, State, Tabs, useNow } from "../parts";
import { setQuery, useAddress, view } from "../router";
import { useServer } from "../server";
import { Actions } from "./actions";
import { Curves } from "./curves";
import { Details } from "./details";
import { Graph } from "./graph";
import { Logs } from "./logs";
import { Resources } from "./resources";
import { Timeline } from "./timeline";

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
  const addressOf = (name: string) => view(["runs", id, name.toLowerCase()], { step: step?.path });
  const onSelect = (path: string) => setQuery({ step: path === selected ? undefined : path });
  const overview = { run, now, selected, onSelect };
  const isOverview = tab === "graph" || tab === "timeline";
  return (
    <div className="run">
      <Header folder={folder} run={run} now={now} />
      <Tabs label="Views of the run" tabs={TABS.map((name) => [name, addressOf(name)])} selected={tab} />
      <div className="content">
        {isOverview && run.verdict && <Failure run={run} verdict={run.verdict} />}
        {isOverview && (
          <div className="split">
            {tab === "graph" ? <Graph {...overview} /> : <Timeline {...overview} />}
            <Details folder={folder} run={run} step={step} now={now} />
          </div>
        )}
        {tab === "curves" && <Curves folder={folder} run={id} step={step?.path} />}
        {tab === "resources" && <Resources folder={folder} run={run} />}
        {tab === "logs" && <Logs folder={folder} run={run} />}
        {!TABS.some((name) => name.toLowerCase() === tab) && <Empty title="There is no such view of a run" />}
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
        <Folded title={`The last ${count(tail.length, "line")} of the log`} open>
          {harmless(tail.join("\n"))}
        </Folded>
      )}
      {traceback && !tail.join("\n").includes(end) && <Folded title="Traceback">{harmless(traceback)}</Folded>}
    </section>
  );
}
