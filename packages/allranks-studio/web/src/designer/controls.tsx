// Controls of the designer: values by type, with range and choices.
import { type KeyboardEvent, useEffect, useId, useState } from "react";
import type { Port } from "../api";
import { Choose } from "../controls";
import { isData } from "./ports";

export type Plain = string | number | boolean | null;

interface Properties {
  id: string;
  port: Port;
  value: Plain; // null: none, and the default is shown
  disabled?: boolean;
  describedBy?: string;
  onChange: (value: Plain) => void;
}

// The control of a port's value.
export function Control(properties: Properties) {
  const { port, value, onChange, id, disabled = false } = properties;
  if (port.type !== "boolean" && !port.enum.length) return <TextControl {...properties} />;
  const choices = port.type === "boolean" ? ["true", "false"] : port.enum;
  const none = ["", port.default === null ? "—" : `${asText(port.default)} (default)`] as const;
  const parsed = (text: string) => (port.type === "boolean" ? text === "true" : text);
  const change = (text: string) => onChange(text === "" ? null : parsed(text));
  return <Choose id={id} disabled={disabled} options={[none, ...choices]} value={asText(value)} onChange={change} />;
}

// The value is complete at Enter, or when the focus leaves.
function TextControl({ id, port, value, disabled, describedBy, onChange }: Properties) {
  const [text, setText] = useState(asText(value));
  const [problem, setProblem] = useState("");
  useEffect(() => {
    setText(asText(value));
    setProblem("");
  }, [value]);
  const commit = () => {
    if (text === asText(value)) return;
    const [parsed, wrong] = parse(text, port);
    setProblem(wrong);
    if (!wrong) onChange(parsed);
  };
  return (
    <>
      <input
        id={id}
        disabled={disabled}
        aria-describedby={describedBy}
        aria-invalid={problem !== ""}
        inputMode={port.type === "integer" ? "numeric" : port.type === "number" ? "decimal" : "text"}
        value={text}
        placeholder={port.default === null && isData(port.type) ? "not connected" : asText(port.default)}
        onChange={(event) => setText(event.target.value)}
        onBlur={commit}
        onKeyDown={(event) => {
          if (event.key === "Enter") commit();
          if (event.key === "Escape") setText(asText(value));
        }}
      />
      {problem && (
        <small className="wrong" role="alert">
          {problem}
        </small>
      )}
    </>
  );
}

export const asText = (value: Plain | undefined) => (value === null || value === undefined ? "" : String(value));

// Return the value that a text gives for a port, and what is wrong with it.
export function parse(text: string, port: Port): [Plain, string] {
  if (text.trim() === "") return [null, ""];
  if (port.type !== "integer" && port.type !== "number") return [text, ""];
  const number = Number(text);
  if (port.type === "integer" && !Number.isInteger(number)) return [null, `${text} is not an integer`];
  if (!Number.isFinite(number)) return [null, `${text} is not a number`];
  if (port.minimum !== null && number < port.minimum) return [null, `${text} is below ${port.minimum}`];
  if (port.maximum !== null && number > port.maximum) return [null, `${text} is above ${port.maximum}`];
  return [number, ""];
}

// Return what can be said about a port in one line.
export function about(port: Port): string {
  const { minimum, maximum } = port;
  const parts = [port.description, port.default === null ? "" : `default ${asText(port.default)}`];
  if (minimum !== null && maximum !== null) parts.push(`${minimum} to ${maximum}`);
  else if (minimum !== null) parts.push(`at least ${minimum}`);
  else if (maximum !== null) parts.push(`at most ${maximum}`);
  return parts.filter(Boolean).join(" · ");
}

// A field for a value with a label.
export function Field(properties: { label: string; port?: Partial<Port> } & Omit<Properties, "id" | "port">) {
  const { label, port, ...rest } = properties;
  const id = useId();
  const whole: Port = { ...PLAIN, ...port };
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <Control id={id} port={whole} describedBy={`${id}-about`} {...rest} />
      {about(whole) && port?.name && <small id={`${id}-about`}>{`${whole.type} · ${about(whole)}`}</small>}
    </div>
  );
}

const OPEN = { default: null, minimum: null, maximum: null, enum: [] };
const PLAIN: Port = { name: "", type: "string", optional: false, description: "", ...OPEN };

// Move the focus through elements by the arrow keys.
export function walk(event: KeyboardEvent, around: Element | null | undefined, stops: string): void {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!by) return;
  event.preventDefault();
  const found = [...(around?.querySelectorAll<HTMLElement>(stops) ?? [])];
  found[found.indexOf(document.activeElement as HTMLElement) + by]?.focus();
}
