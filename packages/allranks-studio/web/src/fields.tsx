// Fields of values by type, with range and choices.
import { type ReactNode, useEffect, useId, useRef, useState } from "react";
import type { Port, Value } from "./api";
import { Button, Choose } from "./controls";
import { hue, isData, isMissing, shown } from "./designer/ports";

type Plain = Extract<Value, { kind: "literal" }>["value"];

// A value with its label, type, range and description.
export function Field(properties: {
  label: string;
  port?: Partial<Port> | undefined; // that the value is of
  value: Value | null; // null: none, and the default is shown
  disabled?: boolean;
  className?: string;
  onChange: (value: Value | null) => void;
  onConnect?: () => void; // for a value that can come from elsewhere in the pipeline
  children?: ReactNode;
}) {
  const { label, value, disabled = false, className = "", onChange, onConnect, children } = properties;
  const id = useId();
  const port: Port = { ...PLAIN, ...properties.port };
  const isBound = value !== null && value.kind !== "literal";
  const change = (plain: Plain) => onChange(literal(plain));
  return (
    <div className={`field ${className}`}>
      <label htmlFor={id}>
        {label}
        {isMissing({ ...port, value }) && <span className="required"> required</span>}
      </label>
      {properties.port?.name && <span className={`type ${hue(port.type)}`}>{port.type}</span>}
      <div className="control">
        {isBound ? (
          <output id={id} className={`chip ${value.kind}`}>
            {value.kind === "input" && "‹ "}
            {shown(value)}
          </output>
        ) : (
          <Control {...{ id, port, disabled }} value={plain(value)} onChange={change} />
        )}
        {onConnect && (
          <>
            <Button text="⇠" name={`Connect ${label}`} disabled={disabled} onClick={onConnect} />
            <Button
              text="×"
              name={`${isBound ? "Disconnect" : "Reset"} ${label}`}
              disabled={disabled || value === null}
              onClick={() => onChange(null)}
            />
          </>
        )}
      </div>
      <small id={`${id}-about`} className="clamp">
        {about(port)}
      </small>
      {children}
    </div>
  );
}

const OPEN = { default: null, minimum: null, maximum: null, enum: [] };
export const PLAIN: Port = { name: "", type: "string", optional: true, description: "", ...OPEN };

export const literal = (value: Plain): Value | null => (value === null ? null : { kind: "literal", value });
export const plain = (value: Value | null | undefined): Plain => (value?.kind === "literal" ? value.value : null);

interface Properties {
  id: string;
  port: Port;
  value: Plain;
  disabled: boolean;
  onChange: (value: Plain) => void;
}

function Control(properties: Properties) {
  const { port, value, onChange, id, disabled } = properties;
  if (port.type !== "boolean" && !port.enum.length) return <TextControl {...properties} />;
  const choices = port.type === "boolean" ? ["true", "false"] : port.enum;
  const none = ["", port.default === null ? "—" : `${port.default} (default)`] as const;
  const parsed = (text: string) => (port.type === "boolean" ? text === "true" : text);
  const change = (text: string) => onChange(text === "" ? null : parsed(text));
  return (
    <Choose id={id} disabled={disabled} options={[none, ...choices]} value={String(value ?? "")} onChange={change} />
  );
}

// The value is complete at Enter, or when the focus leaves. The browser knows what is wrong with a number.
function TextControl({ id, port, value, disabled, onChange }: Properties) {
  const element = useRef<HTMLInputElement>(null);
  const [problem, setProblem] = useState("");
  const text = String(value ?? "");
  const reset = () => {
    if (element.current) element.current.value = text;
    setProblem("");
  };
  useEffect(reset, [text]); // what is typed stays until the value changes
  const isNumber = port.type === "integer" || port.type === "number";
  const commit = (input: HTMLInputElement) => {
    setProblem(input.validationMessage);
    if (input.value === text || !input.validity.valid) return;
    onChange(input.value.trim() === "" ? null : isNumber ? input.valueAsNumber : input.value);
  };
  return (
    <>
      <input
        ref={element}
        id={id}
        disabled={disabled}
        aria-describedby={`${id}-about`}
        aria-invalid={problem !== ""}
        type={isNumber ? "number" : "text"}
        step={port.type === "integer" ? 1 : "any"}
        min={port.minimum ?? undefined}
        max={port.maximum ?? undefined}
        placeholder={port.default === null && isData(port.type) ? "not connected" : String(port.default ?? "")}
        onBlur={(event) => commit(event.target)}
        onKeyDown={(event) => {
          if (event.key === "Enter") commit(event.currentTarget);
          if (event.key === "Escape") reset();
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

// Return what can be said about a port in one line.
export function about({ description, default: initial, minimum, maximum }: Port): string {
  const most = maximum === null ? "" : `at most ${maximum}`;
  const range = minimum === null ? most : maximum === null ? `at least ${minimum}` : `${minimum} to ${maximum}`;
  const words = [description.replace(/\.$/, ""), initial === null ? "" : `default ${initial}`, range];
  return words.filter(Boolean).join(" · ");
}
