// Controls that all views share: buttons, choices and searches.
import type { ComponentProps, ReactNode } from "react";

// A button. name: of one whose text is a symbol
export function Button({ text, name, ...rest }: ComponentProps<"button"> & { text: ReactNode; name?: string }) {
  return (
    <button type="button" aria-label={name} title={name} {...rest}>
      {text}
    </button>
  );
}

type Options = readonly (string | readonly [value: string, title: string])[];

interface Chosen extends Pick<ComponentProps<"select">, "id" | "disabled" | "size"> {
  label?: string;
  options: Options;
  value: string;
  onChange: (value: string) => void;
}

// A list of which one is chosen.
export function Choose({ label, options, onChange, ...rest }: Chosen) {
  return (
    <select aria-label={label} onChange={(event) => onChange(event.target.value)} {...rest}>
      {options.map(pair).map(([value, title]) => (
        <option key={value} value={value}>
          {title}
        </option>
      ))}
    </select>
  );
}

// Buttons of which one is pressed.
export function Switch({ label, options, value, onChange }: Chosen) {
  return (
    <div className="group" role="toolbar" aria-label={label}>
      {options.map(pair).map(([each, title]) => (
        <Button key={each} text={title} aria-pressed={each === value} onClick={() => onChange(each)} />
      ))}
    </div>
  );
}

const pair = (option: Options[number]) => (typeof option === "string" ? ([option, option] as const) : option);

// A field whose placeholder is its name.
export function Search(properties: Omit<ComponentProps<"input">, "onChange"> & { onChange: (value: string) => void }) {
  const { onChange, ...rest } = properties;
  const change = (event: { target: { value: string } }) => onChange(event.target.value);
  return <input type="search" aria-label={rest.placeholder} {...rest} onChange={change} />;
}

// A choice whose name stands before it.
export function Select({ label, ...rest }: Chosen) {
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: it is in Choose
    <label className="check">
      {label}
      <Choose {...rest} />
    </label>
  );
}
