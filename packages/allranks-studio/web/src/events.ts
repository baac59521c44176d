// The server's stream of events: one connection for the whole page, opened by the first listener.
import { useEffect, useRef } from "react";
import type { Event } from "./api";
import { get } from "./server";
import { createStore } from "./store";

type Listener = (event: Event) => void;

// "lost": the browser tries again, and the server continues after the last event that arrived.
export const connection = createStore<"connecting" | "open" | "lost">("connecting");

const listeners = new Set<Listener>();
let source: EventSource | null = null;

export function onEvent(listener: Listener): () => void {
  listeners.add(listener);
  resume();
  return () => listeners.delete(listener);
}

// Call the listener for each event while the component is shown.
export function useEvents(listener: Listener): void {
  const latest = useRef(listener);
  latest.current = listener;
  useEffect(() => onEvent((event) => latest.current(event)), []);
}

let last = ""; // the id of the last event, after which the next connection continues
let isBehind = document.hidden; // whether events may have come while there was no connection

function open(): void {
  source = new EventSource(last ? `/api/events?last=${encodeURIComponent(last)}` : "/api/events");
  source.onopen = () => {
    connection.set("open");
    if (isBehind && !last) tell({ kind: "reset" });
    isBehind = true; // when it is opened again
  };
  source.onmessage = (message) => {
    last = message.lastEventId;
    tell(JSON.parse(message.data));
  };
  source.onerror = () => {
    connection.set("lost");
    if (source?.readyState !== EventSource.CLOSED) return;
    // After an answer other than 200 the browser gives up. A request tells whether it is admitted: a studio that was
    // started again has another key.
    source = null;
    get("/api/state").catch(() => {});
    setTimeout(resume, 3000);
  };
}

function tell(event: Event): void {
  for (const listener of [...listeners]) listener(event);
}

function resume(): void {
  if (!source && !document.hidden && listeners.size > 0) open();
}

// A browser has at most six connections to a server, for all of its tabs: hidden ones need none.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    source?.close();
    source = null;
  }
  resume();
});
