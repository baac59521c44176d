// Controls for values: by type, with range and choices.
import { useEffect, useState } from "react";
import type { Port } from "../api";
import { isData } from "./ports";

export type Plain = string | number | boolean | null;

// A control that calls `onChange` when the value is complete: at Enter, or when it loses the focus.
export function Control(properties: {
  id: string;
  port: Port;
  value: Plain; // null: none, and the default is shown
  disabled?: boolean;
  onChange: (value: Plain) => void;
  describedBy?: string;
}) {
  const { id, port, value, disabled, onChange } = properties;
  const [text, setText] = useState(asText(value));
  const [problem, setProblem] = useState("");
  useEffect(() => {
    setText(asText(value));
    setProblem("");
  }, [value]);
  const shared = { id, disabled, "aria-describedby": properties.describedBy };
  if (port.type === "boolean" || port.enum.length) {
    const choices = port.type === "boolean" ? ["true", "false"] : port.enum;
    const parsed = (chosen: string) => (port.type === "boolean" ? chosen === "true" : chosen);
    return (
      <select
        {...shared}
        value={text}
        onChange={(event) => onChange(event.target.value === "" ? null : parsed(event.target.value))}
      >
        <option value="">{port.default === null ? "—" : `${asText(port.default)} (default)`}</option>
        {choices.map((choice) => (
          <option key={choice}>{choice}</option>
        ))}
      </select>
    );
  }
  const commit = () => {
    if (text === asText(value)) return;
    const [parsed, wrong] = parse(text, port);
    setProblem(wrong);
    if (!wrong) onChange(parsed);
  };
  return (
    <>
      <input
        {...shared}
        type="text"
        inputMode={port.type === "integer" ? "numeric" : port.type === "number" ? "decimal" : "text"}
        value={text}
        placeholder={port.default === null ? (isData(port.type) ? "not connected" : "") : asText(port.default)}
        aria-invalid={problem !== ""}
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
  if (!Number.isFinite(number)) return [null, `${text} is not ${port.type === "integer" ? "an integer" : "a number"}`];
  if (port.type === "integer" && !Number.isInteger(number)) return [null, `${text} is not an integer`];
  if (port.minimum !== null && number < port.minimum) return [null, `${text} is below ${port.minimum}`];
  if (port.maximum !== null && number > port.maximum) return [null, `${text} is above ${port.maximum}`];
  return [number, ""];
}

// Return a port's default and range as text.
export function bounds(port: Port): string {
  const parts = [port.default === null ? "" : `default ${asText(port.default)}`];
  if (port.minimum !== null && port.maximum !== null) parts.push(`${port.minimum} to ${port.maximum}`);
  else if (port.minimum !== null) parts.push(`at least ${port.minimum}`);
  else if (port.maximum !== null) parts.push(`at most ${port.maximum}`);
  return parts.filter(Boolean).join(", ");
}

// A text that is set at Enter or when the focus leaves.
export function TextField(properties: {
  label: string;
  value: string;
  placeholder?: string;
  disabled: boolean;
  onChange: (value: string) => void;
}) {
  const port: Port = { ...PLAIN, name: properties.label, default: properties.placeholder ?? null };
  const id = `text-${properties.label}`;
  return (
    <div className="field">
      <label htmlFor={id}>{properties.label}</label>
      <Control
        id={id}
        port={port}
        value={properties.value || null}
        disabled={properties.disabled}
        onChange={(value) => properties.onChange(asText(value))}
      />
    </div>
  );
}

export const PLAIN: Port = {
  name: "",
  type: "string",
  optional: false,
  description: "",
  default: null,
  minimum: null,
  maximum: null,
  enum: [],
};
