// The schedules of a folder: when they fire next, and what became of their runs.
import { Fragment } from "react";
import { type Folder, type Schedule, SYMBOLS } from "./api";
import { when } from "./format";
import { Empty, isStatus, Loading, Problem, State, Table, Values } from "./parts";
import { view } from "./router";
import { useServer } from "./server";

export default function Schedules({ folder }: { folder: Folder }) {
  const { data, error } = useServer<Schedule[]>("/api/schedules", { folder: folder.id }, (event) => {
    return (event.kind === "schedule" || event.kind === "run") && event.folder === folder.id && 1000;
  });
  if (!data) return error ? <Problem error={error} /> : <Loading />;
  if (!data.length) {
    return (
      <Empty title="No schedules">
        <p>A function of a file in pipelines/ that returns a JobSchedule declares one. To start the scheduler:</p>
        <pre>allranks schedules run</pre>
      </Empty>
    );
  }
  return (
    <div className="page schedules">
      <h1>Schedules</h1>
      {data.every(({ scheduler }) => scheduler === null) && (
        <p className="soft">
          The scheduler of this folder is not running, so nothing fires. Start it: <code>allranks schedules run</code>
        </p>
      )}
      {data.map((schedule) => (
        <One key={schedule.name} schedule={schedule} />
      ))}
    </div>
  );
}

function One({ schedule }: { schedule: Schedule }) {
  const { name, file, trigger, enabled, next, history } = schedule;
  const pipeline = <a href={view(["designer"], { path: file.split(":")[0] })}>{file}</a>;
  return (
    <section>
      <h2>
        {name} {!enabled && <span className="badge">disabled</span>}
      </h2>
      <Values
        values={[
          ["Trigger", trigger],
          ["Pipeline", pipeline],
          ["Next", next.map((time) => when(time).slice(0, -3)).join(", ") || "never"],
        ]}
      />
      {history.length > 0 && (
        <details open={history.length < 6}>
          <summary>
            History{" "}
            <span aria-hidden="true">
              {history.slice(0, 40).map(({ time, status }) => (
                <span key={time} className={`state ${status}`}>
                  {isStatus(status) ? SYMBOLS[status] : "·"}{" "}
                </span>
              ))}
            </span>
          </summary>
          <Table
            heads={["Fired", "State", "Run"]}
            rows={history.map(({ time, status, reason, run }) => [
              when(time),
              <Fragment key="state">
                {isStatus(status) ? <State status={status} /> : status} {reason}
              </Fragment>,
              run && <a href={view(["runs", run])}>{run}</a>,
            ])}
          />
        </details>
      )}
    </section>
  );
}
