// Two or more runs beside each other: curves, inputs that differ, metrics, and code that differs.
import { useMemo } from "react";
import type { Comparison, Curve, Folder, Runs } from "../api";
import { Chart, Controls, highlight, Sample, type Series } from "../charts";
import { count, number } from "../format";
import { Empty, harmless, Loading, Problem, State } from "../parts";
import { setQuery, view } from "../router";
import { useServer } from "../server";

const MOST = 20; // runs whose inputs and metrics are beside each other; more have only curves

export default function Compare({ folder, runs }: { folder: Folder; runs: string }) {
  const ids = useMemo(() => runs.split(",").filter(Boolean), [runs]);
  const concerns = (event: { kind: string; run?: string }) =>
    (event.kind === "points" || event.kind === "run") && ids.includes(event.run ?? "") && 3000;
  const all = useServer<Runs>(runs && "/api/runs", { folder: folder.id });
  const curves = useServer<Curve[]>(runs && "/api/curves", { folder: folder.id, runs }, concerns);
  const differences = useServer<Comparison>(
    ids.length <= MOST && runs ? "/api/compare" : "",
    { folder: folder.id, runs },
    concerns,
  );
  const labels = useMemo(() => labelsOf(ids, differences.data), [ids, differences.data]);
  const charts = useMemo(() => chartsOf(curves.data ?? [], ids), [curves.data, ids]);
  if (!runs) {
    return (
      <Empty title="No runs to compare">
        <p>
          Select some in <a href={view(["runs"])}>Runs</a>, then choose Compare.
        </p>
      </Empty>
    );
  }
  const error = curves.error ?? differences.error;
  return (
    <div className="compare">
      <header className="head">
        <h1>{count(ids.length, "run")}</h1>
        <ul className="chips">
          {ids.map((id, color) => {
            const row = all.data?.id.indexOf(id) ?? -1;
            const status = all.data?.status[row];
            return (
              <li key={id} onMouseEnter={() => highlight.set(id)} onMouseLeave={() => highlight.set("")}>
                <Sample color={color} />
                {status && <State status={status} short />}
                <a href={view(["runs", id])} title={id}>
                  {all.data?.name[row]} <small>{labels[color]}</small>
                </a>
                {ids.length > 1 && (
                  <button
                    type="button"
                    className="plain"
                    aria-label={`Remove ${id}`}
                    onClick={() => setQuery({ runs: ids.filter((each) => each !== id).join(",") })}
                  >
                    ×
                  </button>
                )}
              </li>
            );
          })}
        </ul>
      </header>
      {error && <Problem error={error} />}
      <section>
        <h2>Curves</h2>
        <div className="bar plain">
          <Controls />
        </div>
        {!curves.data && !curves.error && <Loading />}
        {curves.data && !charts.length && <p className="soft">These runs have no curves.</p>}
        <div className="charts">
          {charts.map(({ step, metric, series }) => (
            <Chart key={`${step}/${metric}`} title={metric} note={step} series={series} />
          ))}
        </div>
      </section>
      {differences.data && <Differences found={differences.data} ids={ids} />}
    </div>
  );
}

// Return what tells each run apart: up to three inputs that differ, and its id.
function labelsOf(ids: string[], found: Comparison | null): string[] {
  const inputs = Object.entries(found?.inputs ?? {}).slice(0, 3);
  return ids.map((id) => {
    const index = found?.runs.indexOf(id) ?? -1;
    const values = inputs.map(([name, column]) => `${name} ${column[index] ?? "–"}`);
    return [...values, id].join(" · ");
  });
}

function chartsOf(curves: Curve[], ids: string[]) {
  const charts = new Map<string, { step: string; metric: string; series: Series[] }>();
  const starts = new Map<string, number>();
  for (const { run, time } of curves) {
    starts.set(run, Math.min(starts.get(run) ?? Number.POSITIVE_INFINITY, time[0] ?? Number.POSITIVE_INFINITY));
  }
  for (const { run, step, metric, x, y, time } of curves) {
    const chart = charts.get(`${step}\n${metric}`) ?? { step, metric, series: [] };
    const color = ids.indexOf(run);
    chart.series.push({ label: run, color, x, y, time, start: starts.get(run) ?? 0 });
    charts.set(`${step}\n${metric}`, chart);
  }
  return [...charts.values()].filter(({ series }) => series.some(({ x }) => x.length > 1));
}

function Differences({ found, ids }: { found: Comparison; ids: string[] }) {
  const heads = found.runs.map((id) => (
    <th key={id} scope="col" className="number">
      <Sample color={ids.indexOf(id)} /> {id}
    </th>
  ));
  return (
    <>
      <section>
        <h2>Inputs that differ</h2>
        <Table heads={heads} rows={found.inputs} cell={(value) => value ?? "–"} empty="All inputs are the same." />
      </section>
      <section>
        <h2>Last metrics</h2>
        <Table heads={heads} rows={found.metrics} cell={number} empty="These runs have no metrics." />
      </section>
      {found.causes.length > 0 && (
        <section>
          <h2>
            What else differs <span className="soft">between the first two</span>
          </h2>
          <div className="scroll">
            <table className="table">
              <thead>
                <tr>
                  {["Step", "What", ...found.runs.slice(0, 2)].map((title) => (
                    <th key={title} scope="col">
                      {title}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {found.causes.map(({ step, what, before, after }) => (
                  <tr key={`${step}/${what}`}>
                    <th scope="row">{step}</th>
                    <td>{what}</td>
                    <td>{before}</td>
                    <td>{after}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </section>
      )}
      <section>
        <h2>
          Code that differs <span className="soft">between the first two</span>
        </h2>
        {!found.code.length && <p className="soft">Their steps have the same code.</p>}
        {found.code.map(({ step, file, lines }) => (
          <details key={`${step}/${file}`} className="difference" open={found.code.length < 4}>
            <summary>
              <b>{file}</b> of {step}
            </summary>
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled by keyboard */}
            <pre tabIndex={0}>
              {lines.map((line, index) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other name, and they do not move
                <span key={index} className={kindOf(line)}>
                  {harmless(line)}
                  {"\n"}
                </span>
              ))}
            </pre>
          </details>
        ))}
      </section>
    </>
  );
}

function kindOf(line: string): string | undefined {
  if (line.startsWith("+++") || line.startsWith("---")) return "soft";
  if (line.startsWith("@@")) return "soft";
  return line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : undefined;
}

function Table<T extends string | number>(properties: {
  heads: React.ReactNode;
  rows: Record<string, (T | null)[]>;
  cell: (value: T | null) => string;
  empty: string;
}) {
  const rows = Object.entries(properties.rows);
  if (!rows.length) return <p className="soft">{properties.empty}</p>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled by keyboard
    <div className="scroll" tabIndex={0}>
      <table className="table">
        <thead>
          <tr>
            <td />
            {properties.heads}
          </tr>
        </thead>
        <tbody>
          {rows.map(([name, values]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              {values.map((value, index) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: a column is a run
                <td key={index} className={extreme(values, value)}>
                  {properties.cell(value)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

// The lowest and the highest number of a row stand out.
function extreme(values: (string | number | null)[], value: string | number | null): string {
  const numbers = values.filter((each) => typeof each === "number");
  const isExtreme = numbers.length > 1 && (value === Math.min(...numbers) || value === Math.max(...numbers));
  return isExtreme && Math.min(...numbers) < Math.max(...numbers) ? "number extreme" : "number";
}
