// What is known about a step, or about the run if none is chosen.
import type { ReactNode } from "react";
import type { Folder, Run, Step } from "../api";
import { duration, number } from "../format";
import { State, Table, Values } from "../parts";
import { view } from "../router";
import { address } from "../server";

const MOST_RANKS = 100;

export function RunDetails({ folder, run }: { folder: Folder; run: Run }) {
  return (
    <aside className="details" aria-label="The run">
      <Part title="Inputs">{pairs(run.inputs, folder)}</Part>
      <Part title="Outputs">{pairs(run.outputs, folder)}</Part>
      <Part title="Models">
        {run.models.map(({ name, version }): [string, string] => [name, `version ${version}`])}
      </Part>
      <Notes notes={run.notes} />
      {run.page && (
        <p>
          <a href={address("/api/page", { folder: folder.id, run: run.id })} target="_blank" rel="noreferrer" download>
            Save the run as a page
          </a>{" "}
          <small>one file, for a mail or a ticket</small>
        </p>
      )}
    </aside>
  );
}

export function StepDetails({ folder, run, step, now }: { folder: Folder; run: Run; step: Step; now: number }) {
  const to = (tab: string, rank?: number) => view(["runs", run.id, tab], { step: step.path, rank });
  const { metrics, ranks, reused_from: earlier } = step;
  const hasMetrics = Object.keys(metrics).length > 0;
  const values: [string, ReactNode][] = [
    ["Component", step.component],
    ["Kind", step.kind === "command" ? "" : step.kind],
    ["Layout", step.layout],
    ["Duration", earlier || step.started === null ? "" : duration((step.ended ?? now) - step.started)],
    ["Progress", step.progress],
    ["Attempts", step.attempts > 1 && step.attempts],
    ["Reused from", earlier && <a href={view(["runs", earlier])}>{earlier}</a>],
  ];
  return (
    <aside className="details" aria-label={`Step ${step.path}`}>
      <h2>
        {step.path} <State status={step.status} />
      </h2>
      <Values values={values} />
      {ranks.length > 0 && (
        <p className="links">
          <a href={to("logs")}>Logs</a>
          {hasMetrics && <a href={to("curves")}>Curves</a>}
          <a href={to("resources")}>Resources</a>
        </p>
      )}
      <Part title="Last metrics">
        {Object.entries(metrics).map(([name, value]): [string, string] => [name, number(value)])}
      </Part>
      {ranks.length > 1 && (
        <section>
          <h2 className="small">Ranks</h2>
          <Table
            heads={["Rank", "State", "Instance", "End"]}
            rows={ranks.slice(0, MOST_RANKS).map(({ rank, status, instance, host, exit }) => ({
              key: rank,
              cells: [
                <a key="" href={to("logs", rank)}>
                  {rank}
                </a>,
                <State key="" status={status} short />,
                `${instance} ${host}`,
                exit,
              ],
            }))}
          />
          {ranks.length > MOST_RANKS && <p className="soft">and {ranks.length - MOST_RANKS} more</p>}
        </section>
      )}
      <Part title="Inputs">{pairs(step.inputs, folder)}</Part>
      <Part title="Outputs">
        {pairs(Object.fromEntries(step.outputs.map(({ name, value }) => [name, value])), folder)}
      </Part>
      <Notes notes={step.notes} />
    </aside>
  );
}

// Paths in the folder are shown relative to it.
const pairs = (values: Record<string, string>, folder: Folder) =>
  Object.entries(values).map(([name, value]): [string, string] => [name, value.replace(`${folder.path}/`, "")]);

function Part({ title, children }: { title: string; children: [string, string][] }) {
  if (!children.length) return null;
  return (
    <section>
      <h2 className="small">{title}</h2>
      <Values values={children} />
    </section>
  );
}

function Notes({ notes }: { notes: string[] }) {
  if (!notes.length) return null;
  return (
    <section>
      <h2 className="small">Notes</h2>
      <ul>
        {[...new Set(notes)].map((note) => (
          <li key={note}>{note}</li>
        ))}
      </ul>
    </section>
  );
}
