// What is known about a step, or about the run if none is chosen.
import type { ReactNode } from "react";
import type { Folder, Run, Step } from "../api";
import { duration, number } from "../format";
import { State } from "../parts";
import { view } from "../router";
import { address } from "../server";

const MOST_RANKS = 100;

export function RunDetails({ folder, run }: { folder: Folder; run: Run }) {
  return (
    <aside className="details" aria-label="The run">
      <Values title="Inputs" values={run.inputs} folder={folder} />
      <Values title="Outputs" values={run.outputs} folder={folder} />
      {run.models.length > 0 && (
        <Section title="Models">
          <ul className="plain">
            {run.models.map(({ name, version }) => (
              <li key={`${name} ${version}`}>
                {name} <span className="soft">version {version}</span>
              </li>
            ))}
          </ul>
        </Section>
      )}
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

interface StepProperties {
  folder: Folder;
  run: Run;
  step: Step;
  now: number;
}

export function StepDetails({ folder, run, step, now }: StepProperties) {
  const to = (tab: string) => view(["runs", run.id, tab], { step: step.path });
  const seconds = step.started === null ? null : (step.ended ?? now) - step.started;
  const facts: Record<string, string> = {
    Component: step.component,
    Kind: step.kind === "command" ? "" : step.kind,
    Layout: step.layout,
    Duration: step.reused_from ? "" : duration(seconds),
    Progress: step.progress,
    Attempts: step.attempts > 1 ? String(step.attempts) : "",
  };
  return (
    <aside className="details" aria-label={`Step ${step.path}`}>
      <h2>
        {step.path} <State status={step.status} />
      </h2>
      <dl className="values">
        {Object.entries(facts).map(([name, value]) => value && <Pair key={name} name={name} value={value} />)}
        {step.reused_from && (
          <Pair name="Reused from" value={<a href={view(["runs", step.reused_from])}>{step.reused_from}</a>} />
        )}
      </dl>
      {step.ranks.length > 0 && (
        <p className="links">
          <a href={to("logs")}>Logs</a>
          {Object.keys(step.metrics).length > 0 && <a href={to("curves")}>Curves</a>}
          <a href={to("resources")}>Resources</a>
        </p>
      )}
      {Object.keys(step.metrics).length > 0 && (
        <Section title="Last metrics">
          <dl className="values">
            {Object.entries(step.metrics).map(([name, value]) => (
              <Pair key={name} name={name} value={number(value)} />
            ))}
          </dl>
        </Section>
      )}
      {step.ranks.length > 1 && <Ranks run={run} step={step} />}
      <Values title="Inputs" values={step.inputs} folder={folder} />
      <Values
        title="Outputs"
        values={Object.fromEntries(step.outputs.map(({ name, value }) => [name, value]))}
        folder={folder}
      />
      <Notes notes={step.notes} />
    </aside>
  );
}

function Ranks({ run, step }: { run: Run; step: Step }) {
  return (
    <Section title="Ranks">
      <table className="table">
        <thead>
          <tr>
            <th scope="col">Rank</th>
            <th scope="col">State</th>
            <th scope="col">Instance</th>
            <th scope="col">End</th>
          </tr>
        </thead>
        <tbody>
          {step.ranks.slice(0, MOST_RANKS).map((rank) => (
            <tr key={rank.rank}>
              <th scope="row">
                <a href={view(["runs", run.id, "logs"], { step: step.path, rank: rank.rank })}>{rank.rank}</a>
              </th>
              <td>
                <State status={rank.status} short />
              </td>
              <td>
                {rank.instance} <span className="soft">{rank.host}</span>
              </td>
              <td>{rank.exit}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {step.ranks.length > MOST_RANKS && <p className="soft">and {step.ranks.length - MOST_RANKS} more</p>}
    </Section>
  );
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section>
      <h2 className="small">{title}</h2>
      {children}
    </section>
  );
}

function Pair({ name, value }: { name: string; value: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </>
  );
}

// Paths in the folder are shown relative to it.
function Values({ title, values, folder }: { title: string; values: Record<string, string>; folder: Folder }) {
  if (!Object.keys(values).length) return null;
  return (
    <Section title={title}>
      <dl className="values">
        {Object.entries(values).map(([name, value]) => (
          <Pair key={name} name={name} value={value.replace(`${folder.path}/`, "")} />
        ))}
      </dl>
    </Section>
  );
}

function Notes({ notes }: { notes: string[] }) {
  if (!notes.length) return null;
  return (
    <Section title="Notes">
      <ul>
        {[...new Set(notes)].map((note) => (
          <li key={note}>{note}</li>
        ))}
      </ul>
    </Section>
  );
}
