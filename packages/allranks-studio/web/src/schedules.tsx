// The schedules of a folder: when they fire next, and what became of their runs.
import type { Folder, Schedule } from "./api";
import { when } from "./format";
import { Empty, Loading, Problem, State, symbol } from "./parts";
import { view } from "./router";
import { useServer } from "./server";

const STATUSES = [
  "NotStarted",
  "Preparing",
  "Running",
  "Completed",
  "Failed",
  "Canceled",
  "Interrupted",
  "Skipped",
] as const;

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
  const [next, ...later] = schedule.next;
  return (
    <section>
      <h2>
        {schedule.name} {!schedule.enabled && <span className="badge">disabled</span>}
      </h2>
      <dl className="facts">
        <div>
          <dt>Trigger</dt>
          <dd>{schedule.trigger}</dd>
        </div>
        <div>
          <dt>Pipeline</dt>
          <dd>
            <a href={view(["designer"], { path: schedule.file.split(":")[0] })}>{schedule.file}</a>
          </dd>
        </div>
        <div>
          <dt>Next</dt>
          <dd>{next === undefined ? "never" : when(next)}</dd>
        </div>
        {later.length > 0 && (
          <div>
            <dt>Then</dt>
            <dd>{later.map(when).join(", ")}</dd>
          </div>
        )}
      </dl>
      {schedule.history.length > 0 && (
        <details open={schedule.history.length < 6}>
          <summary>
            History{" "}
            <span aria-hidden="true">
              {schedule.history.slice(0, 40).map(({ time, status }) => {
                const known = STATUSES.find((each) => each === status);
                return known ? (
                  <span key={time} className={`state ${known}`} title={`${when(time)}: ${status}`}>
                    {symbol(known)}{" "}
                  </span>
                ) : null;
              })}
            </span>
          </summary>
          <table className="table">
            <thead>
              <tr>
                <th scope="col">Fired</th>
                <th scope="col">State</th>
                <th scope="col">Run</th>
              </tr>
            </thead>
            <tbody>
              {schedule.history.map(({ time, status, reason, run }) => {
                const known = STATUSES.find((each) => each === status);
                return (
                  <tr key={time}>
                    <th scope="row">{when(time)}</th>
                    <td>
                      {known ? <State status={known} /> : status} <span className="soft">{reason}</span>
                    </td>
                    <td>{run && <a href={view(["runs", run])}>{run}</a>}</td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        </details>
      )}
    </section>
  );
}
