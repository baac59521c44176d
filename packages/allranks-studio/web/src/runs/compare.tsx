// Two or more runs beside each other: curves, inputs that differ, metrics, and code that differs.
import { type ComponentProps, Fragment, type ReactNode, useMemo } from "react";
import type { Comparison, Curve, Folder, Runs } from "../api";
import { Charts, Controls, chartsOf, Named, Sample, type Series } from "../charts";
import { Button } from "../controls";
import { count, number } from "../format";
import { Empty, Folded, harmless, Loading, Problem, State, Table } from "../parts";
import { setQuery, view } from "../router";
import { useServer } from "../server";

const MOST = 20; // runs whose inputs and metrics are beside each other; more have only curves

export default function Compare({ folder, runs }: { folder: Folder; runs: string }) {
  const ids = useMemo(() => runs.split(",").filter(Boolean), [runs]);
  const concerns = (event: { kind: string; run?: string }) =>
    (event.kind === "points" || event.kind === "run") && ids.includes(event.run ?? "") && 3000;
  const all = useServer<Runs>(runs && "/api/runs", { folder: folder.id });
  const curves = useServer<Curve[]>(runs && "/api/curves", { folder: folder.id, runs }, concerns);
  const isBeside = runs !== "" && ids.length <= MOST;
  const differences = useServer<Comparison>(isBeside ? "/api/compare" : "", { folder: folder.id, runs }, concerns);
  const charts = useMemo(() => chartsOf(seriesOf(curves.data ?? [], ids)), [curves.data, ids]);
  const error = curves.error ?? differences.error;
  if (!runs) {
    return (
      <Empty title="No runs to compare">
        <p>
          Select some in <a href={view(["runs"])}>Runs</a>, then choose Compare.
        </p>
      </Empty>
    );
  }
  const chip = (id: string, color: number) => {
    const row = all.data?.id.indexOf(id) ?? -1;
    const status = all.data?.status[row];
    const others = ids.filter((each) => each !== id).join(",");
    return (
      <Named key={id} label={id}>
        <Sample color={color} />
        {status && <State status={status} short />}
        <a href={view(["runs", id])}>
          {all.data?.name[row]} <small>{labelOf(id, differences.data)}</small>
        </a>
        <Button text="×" className="plain" name={`Remove ${id}`} onClick={() => setQuery({ runs: others })} />
      </Named>
    );
  };
  return (
    <div className="compare">
      <header className="head">
        <h1>{count(ids.length, "run")}</h1>
        <ul className="chips">{ids.map(chip)}</ul>
      </header>
      {error && <Problem error={error} />}
      <section>
        <h2>Curves</h2>
        <Controls />
        {!curves.data && !curves.error && <Loading />}
        {curves.data && !charts.length && <p className="soft">These runs have no curves.</p>}
        <Charts charts={charts} />
      </section>
      {differences.data && <Differences found={differences.data} />}
    </div>
  );
}

// Return what tells a run apart: up to three inputs that differ, and its id.
function labelOf(id: string, found: Comparison | null): string {
  const inputs = Object.entries(found?.inputs ?? {}).slice(0, 3);
  const values = inputs.map(([name, column]) => `${name} ${column[found?.runs.indexOf(id) ?? -1] ?? "–"}`);
  return [...values, id].join(" · ");
}

function seriesOf(curves: Curve[], ids: string[]): Series[] {
  const starts = new Map<string, number>();
  for (const { run, time } of curves) {
    starts.set(run, Math.min(starts.get(run) ?? Number.POSITIVE_INFINITY, time[0] ?? Number.POSITIVE_INFINITY));
  }
  return curves.map(({ run, step, metric, x, y, time }) => {
    return { title: metric, note: step, label: run, color: ids.indexOf(run), x, y, time, start: starts.get(run) ?? 0 };
  });
}

function Differences({ found }: { found: Comparison }) {
  const { inputs, metrics, causes, code } = found;
  const runs = found.runs.map((id, color) => (
    <Fragment key={id}>
      <Sample color={color} /> {id}
    </Fragment>
  ));
  const rows = <T,>(values: Record<string, T[]>, shown: (value: T) => ReactNode) =>
    Object.entries(values).map(([name, all]) => [name, ...all.map((value) => shown(value))]);
  return (
    <>
      <Difference title="Inputs that differ" heads={["Input", ...runs]} rows={rows(inputs, (value) => value ?? "–")} />
      <Difference title="Last metrics" heads={["Metric", ...runs]} rows={rows(metrics, number)} />
      <Difference
        title="What else differs between the first two"
        heads={["Step", "What", ...runs.slice(0, 2)]}
        rows={causes.map(({ step, what, before, after }) => [step, what, before, after])}
      />
      <section>
        <h2>Code that differs between the first two</h2>
        {!code.length && <p className="soft">Their steps have the same code.</p>}
        {code.map(({ step, file, lines }) => (
          <Folded key={`${step}/${file}`} open={code.length < 4} title={`${file} of ${step}`}>
            {lines.map(lineOf)}
          </Folded>
        ))}
      </section>
    </>
  );
}

function Difference({ title, ...table }: { title: string } & ComponentProps<typeof Table>) {
  return (
    table.rows.length > 0 && (
      <section>
        <h2>{title}</h2>
        <Table {...table} />
      </section>
    )
  );
}

function lineOf(line: string, index: number) {
  const isHead = /^([+-]{3}|@@)/.test(line);
  const kind = isHead ? "soft" : { "+": "added", "-": "removed" }[line[0] ?? ""];
  return (
    <span key={index} className={kind}>
      {`${harmless(line)}\n`}
    </span>
  );
}
