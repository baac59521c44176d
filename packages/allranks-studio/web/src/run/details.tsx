// What is known about a step, or about the run if none is chosen.
import type { ReactNode } from "react";
import type { Folder, Run, Step } from "../api";
import { duration, number } from "../format";
import { State, Table, Values } from "../parts";
import { view } from "../router";
import { address } from "../server";

const MOST_RANKS = 100;

interface Properties {
  folder: Folder;
  run: Run;
  now: number;
}

export function Details({ folder, run, step, now }: Properties & { step: Step | undefined }) {
  const { inputs, notes } = step ?? run;
  const outputs = step?.outputs.map(({ name, value }): Pair => [name, value]) ?? Object.entries(run.outputs);
  const models = run.models.map(({ name, version }): Pair => [name, `version ${version}`]);
  return (
    <aside className="details" aria-label={step ? `Step ${step.path}` : "The run"}>
      {step && <Facts folder={folder} run={run} step={step} now={now} />}
      <Part title="Inputs">{pairs(Object.entries(inputs), folder)}</Part>
      <Part title="Outputs">{pairs(outputs, folder)}</Part>
      {!step && <Part title="Models">{pairs(models, folder)}</Part>}
      <Part title="Notes">
        {notes.length > 0 && (
          <ul>
            {[...new Set(notes)].map((note) => (
              <li key={note}>{note}</li>
            ))}
          </ul>
        )}
      </Part>
      {!step && run.page && (
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

// What only a step has.
function Facts({ folder, run, step, now }: Properties & { step: Step }) {
  const to = (tab: string, rank?: number) => view(["runs", run.id, tab], { step: step.path, rank });
  const { metrics, ranks, reused_from: earlier } = step;
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
    <>
      <h2>
        {step.path} <State status={step.status} />
      </h2>
      <Values values={values} />
      {ranks.length > 0 && (
        <p className="links">
          <a href={to("logs")}>Logs</a>
          {Object.keys(metrics).length > 0 && <a href={to("curves")}>Curves</a>}
          <a href={to("resources")}>Resources</a>
        </p>
      )}
      <Part title="Last metrics">{pairs(Object.entries(metrics), folder)}</Part>
      {ranks.length > 1 && (
        <Part title="Ranks">
          <Table
            heads={["Rank", "State", "Instance", "End"]}
            rows={ranks.slice(0, MOST_RANKS).map(({ rank, status, instance, host, exit }) => [
              <a key="rank" href={to("logs", rank)}>
                {rank}
              </a>,
              <State key="state" status={status} short />,
              `${instance} ${host}`,
              exit,
            ])}
          />
          {ranks.length > MOST_RANKS && <p className="soft">and {ranks.length - MOST_RANKS} more</p>}
        </Part>
      )}
    </>
  );
}

// A section, unless it has nothing.
function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    children && (
      <section>
        <h2 className="small">{title}</h2>
        {children}
      </section>
    )
  );
}

type Pair = [string, string | number | null];

// Paths in the folder are shown relative to it.
function pairs(values: Pair[], folder: Folder) {
  const shown = (value: Pair[1]) => (typeof value === "string" ? value.replace(`${folder.path}/`, "") : number(value));
  return values.length > 0 && <Values values={values.map(([name, value]) => [name, shown(value)])} />;
}
