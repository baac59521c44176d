// Line charts of many curves by uPlot. Import it dynamically: the table of runs needs no charts.
import { memo, useEffect, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import { duration, number } from "./format";
import { createSavedStore, createStore, useStore } from "./store";

export interface Series {
  label: string;
  color: number; // an index: colours repeat with another dash
  x: number[];
  y: (number | null)[];
  time: number[];
  start: number; // the time that counts as 0
}

// The label of the curve under the pointer: a run has the same one in all charts.
export const highlight = createStore("");

export const options = createSavedStore("studio.curves", { x: "step", smoothing: 0, log: false });

const COLORS = 6;
const DASHES = [[], [6, 4], [2, 4], [10, 4, 2, 4]];
const HEIGHT = 240;
const MOST_NAMED = 12; // curves of a legend

export function Controls() {
  const { x, smoothing, log } = useStore(options);
  const change = (part: Partial<ReturnType<typeof options.get>>) => options.set((before) => ({ ...before, ...part }));
  return (
    <>
      <fieldset className="group" aria-label="Horizontal axis">
        {["step", "time"].map((axis) => (
          <button key={axis} type="button" aria-pressed={x === axis} onClick={() => change({ x: axis })}>
            {axis === "step" ? "Step" : "Time"}
          </button>
        ))}
      </fieldset>
      <button type="button" aria-pressed={log} onClick={() => change({ log: !log })}>
        Log scale
      </button>
      <label className="check">
        Smoothing
        <input
          type="range"
          min="0"
          max="0.98"
          step="0.02"
          value={smoothing}
          onChange={(event) => change({ smoothing: Number(event.target.value) })}
        />
        <output>{smoothing.toFixed(2)}</output>
      </label>
    </>
  );
}

// A chart with its title and legend. It is drawn when it comes into sight.
interface ChartProperties {
  title: string;
  note: string;
  series: Series[];
  isTime?: boolean; // whatever the reader has chosen for curves of a training
}

export const Chart = memo(function Chart({ title, note, series, isTime = false }: ChartProperties) {
  const figure = useRef<HTMLElement>(null);
  const [isVisible, setIsVisible] = useState(false);
  const label = useStore(highlight);
  const highlighted = label ? series.findIndex((each) => each.label === label) : -1;
  useEffect(() => {
    if (!figure.current) return;
    const observer = new IntersectionObserver((entries) => {
      if (entries.some(({ isIntersecting }) => isIntersecting)) setIsVisible(true);
    });
    observer.observe(figure.current);
    return () => observer.disconnect();
  }, []);
  return (
    <figure ref={figure} className="chart">
      <figcaption>
        <b>{title}</b> <span className="soft">{note}</span>
        <ul className="legend">
          {series.slice(0, MOST_NAMED).map((each, index) => (
            <li
              key={each.label}
              className={index === highlighted ? "on" : undefined}
              onMouseEnter={() => highlight.set(each.label)}
              onMouseLeave={() => highlight.set("")}
            >
              <Sample color={each.color} /> {each.label} <b>{number(each.y.findLast((value) => value !== null))}</b>
            </li>
          ))}
          {series.length > MOST_NAMED && <li>and {series.length - MOST_NAMED} more</li>}
        </ul>
      </figcaption>
      {isVisible ? (
        <Plot title={title} series={series} highlighted={highlighted} isTime={isTime} />
      ) : (
        <div style={{ height: HEIGHT }} />
      )}
    </figure>
  );
});

export function Sample({ color }: { color: number }) {
  const dash = DASHES[Math.floor(color / COLORS) % DASHES.length]?.join(" ");
  return (
    <svg className="sample" width="20" height="8" aria-hidden="true">
      <line x1="0" y1="4" x2="20" y2="4" style={{ stroke: `var(--s${color % COLORS})`, strokeDasharray: dash }} />
    </svg>
  );
}

interface PlotProperties {
  title: string;
  isTime: boolean;
  series: Series[];
  highlighted: number;
}

function Plot({ title, series, highlighted, isTime: isResource }: PlotProperties) {
  const chosen = useStore(options);
  const isTime = isResource || chosen.x === "time";
  const [smoothing, log] = isResource ? [0, false] : [chosen.smoothing, chosen.log];
  const place = useRef<HTMLDivElement>(null);
  const tip = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const current = useRef(series);
  current.current = series;
  const isDark = useDark();
  const data = useMemo(() => aligned(series, isTime, smoothing), [series, isTime, smoothing]);
  const latest = useRef(data);
  latest.current = data;
  // What the lines look like; new points alone do not make a new chart.
  const looks = series.map(({ label, color }) => `${label}\n${color}`).join("\n");
  // biome-ignore lint/correctness/useExhaustiveDependencies: the looks and the mode ask for a new chart
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const made = new uPlot(settings(element, current.current, isTime, log), latest.current, element);
    let focused = -1;
    made.hooks.setSeries = [
      (_, index) => {
        focused = index === null ? -1 : index - 1;
        highlight.set(current.current[focused]?.label ?? "");
      },
    ];
    made.hooks.setCursor = [(chart) => describe(chart, current.current, focused, isTime, tip.current)];
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [looks, isTime, log, isDark]);
  useEffect(() => {
    if (plot.current && plot.current.data !== data) plot.current.setData(data);
  }, [data]);
  useEffect(() => {
    plot.current?.setSeries(highlighted < 0 ? null : highlighted + 1, { focus: true }, false);
  }, [highlighted]);
  return (
    <div className="plot">
      <div
        ref={place}
        role="img"
        aria-label={`${title}: ${series
          .map(({ label }) => label)
          .slice(0, 20)
          .join(", ")}`}
      />
      <div ref={tip} className="tip" hidden />
    </div>
  );
}

function useDark(): boolean {
  const [isDark, setIsDark] = useState(() => matchMedia("(prefers-color-scheme: dark)").matches);
  useEffect(() => {
    const query = matchMedia("(prefers-color-scheme: dark)");
    const change = () => setIsDark(query.matches);
    query.addEventListener("change", change);
    return () => query.removeEventListener("change", change);
  }, []);
  return isDark;
}

function settings(element: HTMLElement, series: Series[], isTime: boolean, isLog: boolean): uPlot.Options {
  const style = getComputedStyle(element);
  const variable = (name: string) => style.getPropertyValue(name).trim();
  const axis = {
    stroke: variable("--soft"),
    font: `11px ${style.fontFamily}`,
    grid: { stroke: variable("--line"), width: 1 },
    ticks: { show: false },
  };
  return {
    width: element.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    padding: [8, 12, 0, 0],
    focus: { alpha: 0.2 },
    cursor: { focus: { prox: 24 }, points: { size: 6 }, y: false, drag: { setScale: true, x: true, y: false } },
    scales: { x: { time: false }, y: { distr: isLog ? 3 : 1 } },
    axes: [
      { ...axis, size: 28, values: (_, ticks) => ticks.map(isTime ? axisTime : axisNumber) },
      { ...axis, size: 52, values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : axisNumber(tick))) },
    ],
    series: [
      {},
      ...series.map(({ label, color, x }) => ({
        label,
        stroke: variable(`--s${color % COLORS}`),
        // More kinds of lines than these cannot be told apart, and drawing dashes takes several times as long.
        dash: series.length > COLORS * DASHES.length ? [] : (DASHES[Math.floor(color / COLORS) % DASHES.length] ?? []),
        width: series.length > COLORS * DASHES.length ? 1 : 1.6,
        points: { show: x.length <= 30 && series.length <= COLORS, size: 5, fill: variable("--paper") },
      })),
    ],
  };
}

const axisNumber = (value: number) => (Math.abs(value) >= 1e4 ? value.toExponential(0) : number(value));
const axisTime = (value: number) =>
  value === 0
    ? "0"
    : duration(value)
        .replace(".0 s", " s")
        .replace(/ 0 (s|min|h)$/, "");

// Return the columns of uPlot: all x, and for each series its values there.
function aligned(series: Series[], isTime: boolean, smoothing: number): uPlot.AlignedData {
  const tables = series.map(({ x, y, time, start }): uPlot.AlignedData => {
    const places = isTime ? time.map((moment) => moment - start) : x;
    return increasing(places, smoothing ? smooth(y, smoothing) : y);
  });
  const [first] = tables;
  if (!first) return [[]];
  // Runs of one pipeline mostly log at the same steps, and then there is nothing to join.
  const isSame = tables.every(
    ([places]) => places.length === first[0].length && places.every((x, at) => x === first[0][at]),
  );
  return isSame ? [first[0], ...tables.map(([, y]) => y ?? [])] : uPlot.join(tables);
}

// Without points that are not after the one before: a resumed step repeats some, and its last ones count.
function increasing(x: number[], y: (number | null)[]): uPlot.AlignedData {
  if (x.every((value, index) => index === 0 || value > (x[index - 1] ?? 0))) return [x, y];
  const points = new Map(x.map((value, index) => [value, y[index] ?? null]));
  const sorted = [...points].sort(([one], [other]) => one - other);
  return [sorted.map(([value]) => value), sorted.map(([, value]) => value)];
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
function describe(chart: uPlot, series: Series[], focused: number, isTime: boolean, tip: HTMLElement | null): void {
  if (!tip) return;
  const index = chart.cursor.idx;
  const left = chart.cursor.left ?? -1;
  tip.hidden = index === null || index === undefined || left < 0;
  if (tip.hidden || typeof index !== "number") return;
  const x = chart.data[0]?.[index] ?? 0;
  const all = series.map(({ label }, at) => ({ label, value: chart.data[at + 1]?.[index], at }));
  const known = all.filter(({ value }) => value !== null && value !== undefined);
  const shown = focused >= 0 && series.length > 6 ? known.filter(({ at }) => at === focused) : known.slice(0, 8);
  const lines = shown.map(({ label, value }) => {
    const line = document.createElement("div");
    const strong = document.createElement("b");
    strong.textContent = number(value);
    line.append(`${label} `, strong);
    return line;
  });
  tip.replaceChildren(isTime ? duration(x) : `step ${number(x)}`, ...lines);
  const isRight = left > chart.over.clientWidth / 2;
  tip.style.transform = `translateX(${chart.over.offsetLeft + left + (isRight ? -12 : 12)}px)${isRight ? " translateX(-100%)" : ""}`;
}
