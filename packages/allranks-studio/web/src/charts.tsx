// Line charts of many curves by uPlot. Import it dynamically: the table of runs needs no charts.
import { memo, type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import type { Curve } from "./api";
import { Button, Switch } from "./controls";
import { number, SECONDS, tick } from "./format";
import { useMedia } from "./parts";
import { createSavedStore, createStore, useStore } from "./store";

export interface Series extends Pick<Curve, "x" | "y" | "time"> {
  label: string;
  color: number; // an index: colours repeat with another dash
  start: number; // the time that counts as 0
  title: string; // of its chart
  note: string;
}

// Return the series of each chart. Without a curve there is none.
export function chartsOf(all: Series[]): Series[][] {
  const charts = [...Map.groupBy(all, ({ title, note }) => `${note}\n${title}`).values()];
  return charts.filter((series) => series.some(({ x }) => x.length > 1));
}

// The label of the curve under the pointer: a run has the same one in all charts.
const highlight = createStore("");

const options = createSavedStore("studio.curves", { x: "step", smoothing: 0, log: false });
const PLAIN = { x: "time", smoothing: 0, log: false };

const AXES = [
  ["step", "Step"],
  ["time", "Time"],
] as const;
const COLORS = 6;
const DASHES = [[], [6, 4], [2, 4], [10, 4, 2, 4]];
const COUNTS = Array.from({ length: 36 }, (_, index) => ([1, 2, 5][index % 3] ?? 1) * 10 ** Math.floor(index / 3));
const HEIGHT = 240;
const MOST_NAMED = 12; // curves of a legend

export function Controls() {
  const { x, smoothing, log } = useStore(options);
  const change = (part: object) => options.set((before) => ({ ...before, ...part }));
  return (
    <div className="bar plain">
      <Switch label="Horizontal axis" options={AXES} value={x} onChange={(axis) => change({ x: axis })} />
      <Button text="Log scale" aria-pressed={log} onClick={() => change({ log: !log })} />
      <label className="check">
        Smoothing
        <input
          type="range"
          max="0.98"
          step="0.02"
          value={smoothing}
          onChange={(event) => change({ smoothing: Number(event.target.value) })}
        />
        <output>{smoothing.toFixed(2)}</output>
      </label>
    </div>
  );
}

// isTime: over time, whatever the reader has chosen for the curves of a training
export function Charts({ charts, isTime = false }: { charts: Series[][]; isTime?: boolean }) {
  return (
    <div className="charts">
      {charts.map((series) => (
        <Chart key={`${series[0]?.note}/${series[0]?.title}`} series={series} isTime={isTime} />
      ))}
    </div>
  );
}

// A chart with its title and legend. It is drawn when it comes into sight.
const Chart = memo(function Chart({ series, isTime }: { series: Series[]; isTime: boolean }) {
  const figure = useRef<HTMLElement>(null);
  const [isVisible, setIsVisible] = useState(false);
  useEffect(() => {
    const observer = new IntersectionObserver(
      (entries) => entries.some((each) => each.isIntersecting) && setIsVisible(true),
    );
    if (figure.current) observer.observe(figure.current);
    return () => observer.disconnect();
  }, []);
  return (
    <figure ref={figure} className="chart">
      <figcaption>
        <b>{series[0]?.title}</b> <span className="soft">{series[0]?.note}</span>
        <ul className="legend">
          {series.slice(0, MOST_NAMED).map(({ label, color, y }) => (
            <Named key={label} label={label}>
              <Sample color={color} /> {label} <b>{number(y.findLast((value) => value !== null))}</b>
            </Named>
          ))}
          {series.length > MOST_NAMED && <li>and {series.length - MOST_NAMED} more</li>}
        </ul>
      </figcaption>
      <div style={{ height: HEIGHT }}>{isVisible && <Plot series={series} isTime={isTime} />}</div>
    </figure>
  );
});

// An entry of a list that makes its curve stand out in all charts.
export function Named({ label, children }: { label: string; children: ReactNode }) {
  const set = (value: string) => () => highlight.set(value);
  return (
    <li className={useStore(highlight) === label ? "on" : undefined} onMouseEnter={set(label)} onMouseLeave={set("")}>
      {children}
    </li>
  );
}

const dashOf = (color: number) => DASHES[Math.floor(color / COLORS) % DASHES.length] ?? [];

export function Sample({ color }: { color: number }) {
  return (
    <svg className="sample" width="20" height="8" aria-hidden="true">
      <line
        x2="20"
        y1="4"
        y2="4"
        style={{ stroke: `var(--s${color % COLORS})`, strokeDasharray: dashOf(color).join(" ") }}
      />
    </svg>
  );
}

function Plot({ series, isTime: isPlain }: { series: Series[]; isTime: boolean }) {
  const chosen = useStore(options);
  const { x, smoothing, log } = isPlain ? PLAIN : chosen;
  const isTime = x === "time";
  const place = useRef<HTMLDivElement>(null);
  const tip = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const isDark = useMedia("(prefers-color-scheme: dark)");
  const data = useMemo(() => aligned(series, isTime, smoothing), [series, isTime, smoothing]);
  const latest = useRef({ series, data });
  latest.current = { series, data };
  const label = useStore(highlight);
  const highlighted = series.findIndex((each) => each.label === label);
  // What the lines look like; new points alone do not make a new chart.
  const looks = series.map((each) => `${each.label}\n${each.color}`).join("\n");
  // biome-ignore lint/correctness/useExhaustiveDependencies: the looks and the mode ask for a new chart
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const made = new uPlot(settings(element, series, isTime, log), latest.current.data, element);
    made.hooks.setSeries = [(_, at) => highlight.set((at && latest.current.series[at - 1]?.label) || "")];
    made.hooks.setCursor = [(chart) => describe(chart, latest.current.series, isTime, tip.current)];
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
    };
  }, [looks, isTime, log, isDark]);
  useEffect(() => {
    if (plot.current?.data !== data) plot.current?.setData(data);
  }, [data]);
  useEffect(() => {
    plot.current?.setSeries(highlighted < 0 ? null : highlighted + 1, { focus: true }, false);
  }, [highlighted]);
  const names = series.slice(0, 20).map((each) => each.label);
  return (
    <div className="plot">
      <div ref={place} role="img" aria-label={`${series[0]?.title}: ${names.join(", ")}`} />
      <div ref={tip} className="tip" hidden />
    </div>
  );
}

function settings(element: HTMLElement, series: Series[], isTime: boolean, isLog: boolean): uPlot.Options {
  const style = getComputedStyle(element);
  const variable = (name: string) => style.getPropertyValue(name).trim();
  const grid = { stroke: variable("--line"), width: 1 };
  const axis = { stroke: variable("--soft"), font: `11px ${style.fontFamily}`, grid, ticks: { show: false } };
  // More kinds of lines than these cannot be told apart, and drawing dashes takes several times as long.
  const isMany = series.length > COLORS * DASHES.length;
  return {
    width: element.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    padding: [8, 12, 0, 0],
    focus: { alpha: 0.2 },
    cursor: { focus: { prox: 24 }, points: { size: 6 }, y: false, drag: { setScale: true, x: true, y: false } },
    scales: { x: { time: false }, y: { distr: isLog ? 3 : 1 } },
    axes: [
      {
        ...axis,
        size: 28,
        incrs: isTime ? SECONDS : COUNTS,
        values: (_, at) => at.map(isTime ? axisTime : axisNumber),
      },
      { ...axis, size: 52, values: (_, at) => at.map(axisNumber) },
    ],
    series: [
      {},
      ...series.map(({ label, color, x }) => ({
        label,
        stroke: variable(`--s${color % COLORS}`),
        dash: isMany ? [] : dashOf(color),
        width: isMany ? 1 : 1.6,
        points: { show: x.length <= 30 && series.length <= COLORS, size: 5, fill: variable("--paper") },
      })),
    ],
  };
}

const axisTime = (value: number) => (value ? tick(value) : "0");
const axisNumber = (
  value: number | null, // null: no label, as on logarithmic scales
) => (value && Math.abs(value) >= 1e4 ? value.toLocaleString("en", { notation: "compact" }) : number(value));

// Return the columns of uPlot: all x, and for each series its values there.
function aligned(series: Series[], isTime: boolean, smoothing: number): uPlot.AlignedData {
  const tables = series.map(({ x, y, time, start }): uPlot.AlignedData => {
    const places = isTime ? time.map((moment) => moment - start) : x;
    return increasing(places, smoothing ? smooth(y, smoothing) : y);
  });
  const [first] = tables;
  if (!first) return [[]];
  // Runs of one pipeline mostly log at the same steps, and then there is nothing to join.
  const isSame = tables.every(([at]) => at.length === first[0].length && at.every((x, index) => x === first[0][index]));
  return isSame ? [first[0], ...tables.map(([, y]) => y ?? [])] : uPlot.join(tables);
}

// Without points that are not after the one before: a resumed step repeats some, and its last ones count.
function increasing(x: number[], y: (number | null)[]): uPlot.AlignedData {
  if (x.every((value, index) => index === 0 || value > (x[index - 1] ?? 0))) return [x, y];
  const points = [...new Map(x.map((value, index) => [value, y[index] ?? null]))].sort(([one], [other]) => one - other);
  return [points.map(([value]) => value), points.map(([, value]) => value)];
}

// The exponential mean, corrected for its beginning.
function smooth(values: (number | null)[], weight: number): (number | null)[] {
  let [mean, share] = [0, 0];
  return values.map((value) => {
    if (value === null) return null;
    mean = mean * weight + value * (1 - weight);
    share = share * weight + (1 - weight);
    return mean / share;
  });
}

// Show the values at the pointer: of the highlighted curve, or of the first ones.
function describe(chart: uPlot, series: Series[], isTime: boolean, tip: HTMLElement | null): void {
  const { idx, left = -1 } = chart.cursor;
  if (!tip) return;
  tip.hidden = typeof idx !== "number" || left < 0;
  if (typeof idx !== "number") return;
  const all = series.map(({ label }, at) => ({ label, value: chart.data[at + 1]?.[idx] }));
  const known = all.filter(({ value }) => value !== null && value !== undefined);
  const one = known.filter(({ label }) => label === highlight.get());
  const shown = one.length && series.length > 6 ? one : known.slice(0, 8);
  const lines = shown.map(({ label, value }) => {
    const line = document.createElement("div");
    line.append(`${label} `, Object.assign(document.createElement("b"), { textContent: number(value) }));
    return line;
  });
  const x = chart.data[0][idx] ?? 0;
  tip.replaceChildren(isTime ? tick(x) : `step ${number(x)}`, ...lines);
  const isRight = left > chart.over.clientWidth / 2;
  const offset = chart.over.offsetLeft + left + (isRight ? -12 : 12);
  tip.style.transform = `translateX(${offset}px)${isRight ? " translateX(-100%)" : ""}`;
}
