// The server's stream of events: one connection for the whole page, opened by the first listener.
import { useEffect, useRef } from "react";
import type { Event } from "./api";
import { createStore } from "./store";

type Listener = (event: Event) => void;

// "lost": the browser tries again, and the server continues after the last event that arrived.
export const connection = createStore<"connecting" | "open" | "lost">("connecting");

const listeners = new Set<Listener>();
let source: EventSource | null = null;

export function onEvent(listener: Listener): () => void {
  listeners.add(listener);
  if (!source) open();
  return () => listeners.delete(listener);
}

// Call the listener for each event while the component is shown.
export function useEvents(listener: Listener): void {
  const latest = useRef(listener);
  latest.current = listener;
  useEffect(() => onEvent((event) => latest.current(event)), []);
}

function open(): void {
  source = new EventSource("/api/events");
  source.onopen = () => connection.set("open");
  source.onmessage = (message) => {
    const event = JSON.parse(message.data) as Event;
    for (const listener of [...listeners]) listener(event);
  };
  source.onerror = () => {
    connection.set("lost");
    if (source?.readyState !== EventSource.CLOSED) return;
    // After an answer other than 200 the browser gives up. What was missed meanwhile is read again.
    source = null;
    setTimeout(() => {
      open();
      for (const listener of [...listeners]) listener({ kind: "reset" });
    }, 3000);
  };
}
