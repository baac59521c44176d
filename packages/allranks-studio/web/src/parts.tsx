// Pieces that all views share. style.css has their looks.
import { type ReactNode, useEffect, useRef, useState, useSyncExternalStore } from "react";
import type { Status } from "./api";
import { ServerError } from "./server";
import { createStore, useStore } from "./store";

const SYMBOLS: Record<Status, string> = {
  NotStarted: "○",
  Preparing: "◌",
  Running: "●",
  Completed: "✓",
  Failed: "✗",
  Canceled: "■",
  Interrupted: "!",
  Skipped: "⊘",
};

export const label = (status: Status) => (status === "NotStarted" ? "Not started" : status);
export const symbol = (status: Status) => SYMBOLS[status];
export const isActive = (status: Status) => status === "Running" || status === "Preparing" || status === "NotStarted";

// A state by symbol, word and colour. short: the symbol, with the word for screen readers
export function State({ status, short = false }: { status: Status; short?: boolean }) {
  return (
    <span className={`state ${status}`} title={short ? label(status) : undefined}>
      <i aria-hidden="true">{SYMBOLS[status]}</i>
      <span className={short ? "hidden" : undefined}> {label(status)}</span>
    </span>
  );
}

// Whether a media query holds now, such as "(max-width: 600px)".
export function useMedia(query: string): boolean {
  const list = matchMedia(query);
  return useSyncExternalStore(
    (listener) => {
      list.addEventListener("change", listener);
      return () => list.removeEventListener("change", listener);
    },
    () => list.matches,
  );
}

// The time in seconds, which goes on every second while it is needed.
export function useNow(isTicking: boolean): number {
  const [now, setNow] = useState(() => Date.now() / 1000);
  useEffect(() => {
    if (!isTicking) return;
    const timer = setInterval(() => setNow(Date.now() / 1000), 1000);
    return () => clearInterval(timer);
  }, [isTicking]);
  return now;
}

// Text of a program without control characters and reordering marks, which would change what stands around it.
export const harmless = (text: string) => text.replace(/(?![\n\t])[\p{Cc}\p{Bidi_Control}]/gu, "");

// What went wrong and how to fix it.
export function Problem({ error, children }: { error: unknown; children?: ReactNode }) {
  const fix = error instanceof ServerError ? error.fix : "";
  return (
    <div className="problem" role="alert">
      <b>{error instanceof Error ? error.message : String(error)}</b>
      {fix && <p>{fix}</p>}
      {children}
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export function Loading() {
  return (
    <p className="loading" role="status">
      Loading …
    </p>
  );
}

// Views of one thing, each with an address.
export function Tabs({ name, tabs, selected }: { name: string; tabs: [string, string][]; selected: string }) {
  return (
    <nav className="tabs" aria-label={name}>
      {tabs.map(([title, href]) => (
        <a key={title} href={href} aria-current={title === selected ? "page" : undefined}>
          {title}
        </a>
      ))}
    </nav>
  );
}

// A modal dialog; Escape and the button close it. The form inside submits with Enter.
export function Dialog(properties: {
  title: string;
  onClose: () => void;
  onSubmit?: () => void;
  submit?: string;
  dismiss?: string;
  disabled?: boolean;
  children: ReactNode;
}) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    element.current?.showModal();
    // A body that scrolls would get the focus itself.
    element.current?.querySelector<HTMLElement>(".body :is(input, select, button)")?.focus();
  }, []);
  return (
    <dialog ref={element} aria-label={properties.title} onClose={properties.onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          properties.onSubmit?.();
        }}
      >
        <h2>{properties.title}</h2>
        <div className="body">{properties.children}</div>
        <footer>
          <button type="button" onClick={properties.onClose}>
            {properties.dismiss ?? (properties.onSubmit ? "Cancel" : "Close")}
          </button>
          {properties.onSubmit && (
            <button type="submit" className="primary" disabled={properties.disabled}>
              {properties.submit ?? "OK"}
            </button>
          )}
        </footer>
      </form>
    </dialog>
  );
}

interface Message {
  id: number;
  text: string;
  fix: string;
  level: "error" | "info";
}

const messages = createStore<Message[]>([]);
let lastMessage = 0;

// Show a message at the edge of the page; an error stays until it is closed.
export function show(message: unknown, level: Message["level"] = message instanceof Error ? "error" : "info"): void {
  lastMessage += 1;
  const id = lastMessage;
  const text = message instanceof Error ? message.message : String(message);
  const fix = message instanceof ServerError ? message.fix : "";
  messages.set((before) => [...before.slice(-3), { id, text, fix, level }]);
  if (level === "info") setTimeout(() => dismiss(id), 6000);
}

const dismiss = (id: number) => messages.set((before) => before.filter((each) => each.id !== id));

export function Messages() {
  return (
    <div className="messages" role="status">
      {useStore(messages).map(({ id, text, fix, level }) => (
        <div key={id} className={level}>
          <p>
            <b>{text}</b> {fix}
          </p>
          <button type="button" className="plain" aria-label="Close the message" onClick={() => dismiss(id)}>
            ×
          </button>
        </div>
      ))}
    </div>
  );
}
