// biome-ignore-all lint/suspicious/noArrayIndexKey: the cells of a row do not move
// Pieces that all views share. style.css has their looks.
import {
  type FormEvent,
  Fragment,
  type ReactNode,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
  useSyncExternalStore,
} from "react";
import { type Status, SYMBOLS } from "./api";
import { Button } from "./controls";
import { ServerError } from "./server";
import { createStore, useStore } from "./store";

export const label = (status: Status) => (status === "NotStarted" ? "Not started" : status);
export const isStatus = (text: string): text is Status => text in SYMBOLS;
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
  const subscribe = (listener: () => void) => {
    list.addEventListener("change", listener);
    return () => list.removeEventListener("change", listener);
  };
  return useSyncExternalStore(subscribe, () => list.matches);
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

export const Loading = () => <output className="loading">Loading …</output>;

// A table of little data. The first cell of a row is its head.
export function Table({ heads, rows }: { heads: ReactNode[]; rows: ReactNode[][] }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled by keyboard
    <div className="scroll" tabIndex={0}>
      <table className="table">
        <thead>
          <tr>
            {heads.map((head, index) => (
              <th key={index} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(([head, ...cells], index) => (
            <tr key={index}>
              <th scope="row">{head}</th>
              {cells.map((cell, at) => (
                <td key={at}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

// Text that is folded until it is asked for.
export function Folded({ title, open = false, children }: { title: string; open?: boolean; children: ReactNode }) {
  return (
    <details open={open}>
      <summary>{title}</summary>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled by keyboard */}
      <pre tabIndex={0}>{children}</pre>
    </details>
  );
}

// Names with their values; those without a value are left out.
export function Values({ values }: { values: [string, ReactNode][] }) {
  return (
    <dl className="values">
      {values.map(
        ([name, value]) =>
          value && (
            <Fragment key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </Fragment>
          ),
      )}
    </dl>
  );
}

// Links to views by their names.
export function Tabs({ label, tabs, selected }: { label: string; tabs: [string, string][]; selected: string }) {
  return (
    <nav className="tabs" aria-label={label}>
      {tabs.map(([name, href]) => (
        <a key={name} href={href} aria-current={name.toLowerCase() === selected ? "page" : undefined}>
          {name}
        </a>
      ))}
    </nav>
  );
}

// A modal dialog; Escape and the button close it. The form inside submits with Enter.
export function Dialog(properties: {
  title: string;
  submit?: string;
  dismiss?: string;
  disabled?: boolean;
  onClose: () => void;
  onSubmit?: () => void;
  children: ReactNode;
}) {
  const { title, submit = "OK", dismiss, disabled, onClose, onSubmit, children } = properties;
  const element = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    // A body that scrolls would get the focus itself.
    const first = dialog?.querySelector<HTMLElement>(".body :is(input, select, button)");
    first?.focus();
    if (first instanceof HTMLInputElement) first.select();
    return () => dialog?.close(); // which gives the focus back
  }, []);
  const send = (event: FormEvent) => {
    event.preventDefault();
    onSubmit?.();
  };
  return (
    <dialog ref={element} aria-label={title} onClose={onClose}>
      <form onSubmit={send}>
        <h2>{title}</h2>
        <div className="body">{children}</div>
        <footer>
          <Button text={dismiss ?? (onSubmit ? "Cancel" : "Close")} onClick={onClose} />
          {onSubmit && (
            <button type="submit" className="primary" disabled={disabled}>
              {submit}
            </button>
          )}
        </footer>
      </form>
    </dialog>
  );
}

const messages = createStore<{ id: number; error: unknown; level: "error" | "info" }[]>([]);
const dismiss = (id: number) => messages.set((before) => before.filter((each) => each.id !== id));

// Show a message at the edge of the page; an error stays until it is closed.
export function show(error: unknown, level: "error" | "info" = error instanceof Error ? "error" : "info"): void {
  const id = Math.max(0, ...messages.get().map((each) => each.id)) + 1;
  messages.set((before) => [...before.slice(-3), { id, error, level }]);
  if (level === "info") setTimeout(() => dismiss(id), 6000);
}

export function Messages() {
  return (
    <div className="messages" role="status">
      {useStore(messages).map(({ id, error, level }) => (
        <div key={id} className={level}>
          <p>
            <b>{error instanceof Error ? error.message : String(error)}</b> {error instanceof ServerError && error.fix}
          </p>
          <Button text="×" className="plain" name="Close the message" onClick={() => dismiss(id)} />
        </div>
      ))}
    </div>
  );
}
