// Times, numbers and sizes as the run page and the terminal print them.

export function duration(seconds: number | null): string {
  if (seconds === null) return "";
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 59.5) return `${Math.round(seconds)} s`;
  const whole = Math.round(seconds);
  const [days, hours] = [Math.floor(whole / 86400), Math.floor(whole / 3600) % 24];
  const [minutes, rest] = [Math.floor(whole / 60) % 60, whole % 60];
  if (days) return `${days} d ${hours} h`;
  return hours ? `${hours} h ${minutes} min` : `${minutes} min ${rest} s`;
}

// What the ticks of a time axis are apart.
export const SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400, 604800];

// The duration at a tick of an axis, without parts that are 0.
export const tick = (seconds: number) =>
  duration(seconds)
    .replace(".0 s", " s")
    .replace(/ 0 (s|min|h)$/, "");

// "2026-11-30 06:06:21", which is how Swedish writes it.
export const when = (time: number | null) => (time === null ? "" : new Date(time * 1000).toLocaleString("sv"));

// The date only if it is not today's, for narrow columns.
export function shortTime(time: number): string {
  const text = when(time);
  return text.slice(0, 10) === when(Date.now() / 1000).slice(0, 10) ? text.slice(11) : text.slice(2, 16);
}

export function number(value: number | null | undefined): string {
  if (value === null || value === undefined) return "";
  if (Number.isInteger(value) && Math.abs(value) < 1e9) return value.toLocaleString("en");
  const size = Math.abs(value);
  return size >= 1e-4 && size < 1e6 ? String(Number(value.toPrecision(4))) : value.toExponential(2);
}

export function bytes(size: number): string {
  const unit = Math.min(Math.floor(Math.log10(Math.max(size, 1)) / 3), 4);
  const rest = size / 1000 ** unit;
  return `${unit === 0 || rest >= 100 ? Math.round(rest) : rest.toFixed(1)} ${["B", "kB", "MB", "GB", "TB"][unit]}`;
}

export const count = (amount: number, noun: string) =>
  `${amount.toLocaleString("en")} ${noun}${amount === 1 ? "" : "s"}`;
