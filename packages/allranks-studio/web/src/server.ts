// Requests to the server that served this page.
import { useEffect, useRef, useState } from "react";
import type { Event } from "./api";
import { useEvents } from "./events";
import { createStore } from "./store";

// An answer with an error, or none. `body` is what the server sent, such as a Conflict for 409.
export class ServerError extends Error {
  constructor(
    readonly status: number, // 0: the server did not answer
    message: string,
    readonly fix: string,
    readonly body: unknown = null,
  ) {
    super(message);
  }
}

// Whether the server refused this browser: its cookie is missing or of an earlier start.
export const unauthorised = createStore(false);

export type Query = Record<string, string | number | boolean | undefined>;

// Return a path with a query; names without a value are left out.
export function address(path: string, query: Query = {}): string {
  const known = Object.entries(query).filter(([, value]) => value !== undefined);
  const text = new URLSearchParams(known.map(([name, value]) => [name, String(value)])).toString();
  return text ? `${path}?${text}` : path;
}

// Return the JSON of an address such as "/api/runs". Raise ServerError.
export function get<T>(path: string, query: Query = {}, signal: AbortSignal | null = null): Promise<T> {
  return request<T>(address(path, query), { signal });
}

// Send JSON and return the answer's. Raise ServerError.
export function post<T>(path: string, body: object): Promise<T> {
  const headers = { "Content-Type": "application/json" };
  return request<T>(path, { method: "POST", headers, body: JSON.stringify(body) });
}

async function request<T>(url: string, options: RequestInit): Promise<T> {
  const answer = await fetch(url, { ...options, credentials: "same-origin" }).catch((error) => {
    if (options.signal?.aborted) throw error;
    throw new ServerError(0, "The studio's server does not answer.", "Start it again: allranks studio");
  });
  const body = await answer.json().catch(() => null);
  if (answer.ok) return body as T;
  if (answer.status === 401) unauthorised.set(true);
  const { message, fix } = (body ?? {}) as { message?: string; fix?: string };
  const status = `The server answered ${answer.status} ${answer.statusText}.`;
  throw new ServerError(answer.status, message ?? status, fix ?? "", body);
}

export interface Answer<T> {
  data: T | null; // the last one that arrived
  error: ServerError | null; // of the last request
  reload: () => void;
}

// How an answer is brought up to date by a part of it. query: of that part, or null to load the whole again.
export interface Partial<T> {
  query: (before: T) => Query | null;
  merge: (before: T, part: T) => T;
}

// Load an address, and load it again after the events that concern it. concerns: after how many milliseconds, so that
// many events are one request; true for 500. An empty path loads nothing.
export function useServer<T>(
  path: string,
  query: Query = {},
  concerns: (event: Event) => boolean | number = () => false,
  partial: Partial<T> | null = null,
): Answer<T> {
  const url = path && address(path, query);
  const [state, setState] = useState({ url: "", data: null as T | null, error: null as ServerError | null });
  const [version, setVersion] = useState(0);
  const reload = () => setVersion((before) => before + 1);
  const took = useRef(0); // milliseconds of the last answer, which may be of a run with thousands of steps
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new version asks for the same address again
  useEffect(() => {
    if (!url) return;
    const control = new AbortController();
    const begin = performance.now();
    const before = state.url === url && !state.error ? state.data : null;
    const part = (before && partial?.query(before)) ?? null;
    const settle = (data: T | null, error: ServerError | null) =>
      setState((before) => ({ url, data: data ?? (before.url === url ? before.data : null), error }));
    request<T>(part ? address(path, { ...query, ...part }) : url, { signal: control.signal })
      .then((data) => {
        took.current = performance.now() - begin;
        settle(part && before && partial ? partial.merge(before, data) : data, null);
      })
      .catch((error) => !control.signal.aborted && settle(null, error as ServerError));
    return () => control.abort();
  }, [url, version]);
  const next = useRef({ timer: 0, due: Number.POSITIVE_INFINITY });
  useEvents((event) => {
    const delay = concerns(event) || event.kind === "reset";
    // A page that follows an engine takes at most a tenth of a core from it.
    const wait = Math.max(delay === true ? 500 : Number(delay), 10 * took.current);
    if (delay === false || performance.now() + wait >= next.current.due) return;
    clearTimeout(next.current.timer);
    const timer = window.setTimeout(() => {
      next.current.due = Number.POSITIVE_INFINITY;
      reload();
    }, wait);
    next.current = { timer, due: performance.now() + wait };
  });
  useEffect(() => () => clearTimeout(next.current.timer), []);
  const isCurrent = state.url === url;
  return { data: isCurrent ? state.data : null, error: isCurrent ? state.error : null, reload };
}
