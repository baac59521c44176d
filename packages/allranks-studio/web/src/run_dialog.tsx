// The dialog that starts a run with other inputs.
import { useState } from "react";
import type { Plain, Port, Value } from "./api";
import { Field, literal, plain } from "./fields";
import { Dialog, Problem } from "./parts";

export function RunDialog(properties: {
  title: string;
  note?: string;
  inputs: { name: string; port?: Port; value: Value | null }[];
  start: (changed: Record<string, Plain>) => Promise<unknown>;
  onClose: () => void;
}) {
  const { title, note, inputs, start, onClose } = properties;
  const [changed, setChanged] = useState<Record<string, Plain>>({});
  const [{ isBusy, problem }, setState] = useState({ isBusy: false, problem: null as unknown });
  const submit = () => {
    setState({ isBusy: true, problem: null });
    const known = Object.entries(changed).filter(([, value]) => value !== null);
    start(Object.fromEntries(known)).then(onClose, (error) => setState({ isBusy: false, problem: error }));
  };
  return (
    <Dialog title={title} submit={isBusy ? "Starting …" : "Run"} disabled={isBusy} onClose={onClose} onSubmit={submit}>
      {note && <p className="soft">{note}</p>}
      {inputs.map(({ name, port, value }) => (
        <Field
          key={name}
          label={name}
          port={port && { ...port, default: plain(value) ?? port.default }}
          value={name in changed ? literal(changed[name] ?? null) : value}
          onChange={(value) => setChanged({ ...changed, [name]: plain(value) })}
        />
      ))}
      {!inputs.length && <p className="soft">The pipeline has no inputs.</p>}
      {problem !== null && <Problem error={problem} />}
    </Dialog>
  );
}
