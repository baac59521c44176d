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

const two = (value: number) => String(value).padStart(2, "0");

export function clock(time: number): string {
  const date = new Date(time * 1000);
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

export function day(time: number): string {
  const date = new Date(time * 1000);
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

export function when(time: number | null): string {
  return time === null ? "" : `${day(time)} ${clock(time)}`;
}

// The date only if it is not today's, for narrow columns.
export function shortTime(time: number): string {
  const isToday = day(time) === day(Date.now() / 1000);
  return isToday ? clock(time) : `${day(time).slice(2)} ${clock(time).slice(0, 5)}`;
}

export function number(value: number | null | undefined): string {
  if (value === null || value === undefined) return "";
  if (!Number.isFinite(value)) return String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e9) return value.toLocaleString("en");
  const size = Math.abs(value);
  return size >= 1e-4 && size < 1e6 ? String(Number(value.toPrecision(4))) : value.toExponential(2);
}

export function bytes(size: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  let rest = size;
  while (rest >= 1000 && unit < units.length - 1) {
    rest /= 1000;
    unit += 1;
  }
  return `${unit === 0 || rest >= 100 ? Math.round(rest) : rest.toFixed(1)} ${units[unit]}`;
}

export function count(amount: number, noun: string): string {
  return `${amount.toLocaleString("en")} ${noun}${amount === 1 ? "" : "s"}`;
}
