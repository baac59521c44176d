// Dialogs: what to connect, a name, inputs of a run, exports.
import { useState } from "react";
import { Button, Choose, Search, Switch } from "../controls";
import { Dialog, Problem, show } from "../parts";
import { RunDialog } from "../run_dialog";
import { post, useServer } from "../server";
import { type Task, useEditor } from "./editor";

export function Dialogs() {
  const { task, ask } = useEditor();
  const onClose = () => ask(null);
  if (task?.kind === "connect") return <Connect task={task} onClose={onClose} />;
  if (task?.kind === "name") return <Name {...task} label="Name" onClose={onClose} />;
  if (task?.kind === "run") return <Start onClose={onClose} />;
  return task && <Export onClose={onClose} />;
}

function Connect({ task, onClose }: { task: Extract<Task, { kind: "connect" }>; onClose: () => void }) {
  const { session } = useEditor();
  const [query, setQuery] = useState("");
  const [label, setLabel] = useState("");
  const [name, setName] = useState<string | null>(null); // null: the proposed one
  const found = task.choices.filter((each) => each.label.toLowerCase().includes(query.toLowerCase()));
  const chosen = found.find((each) => each.label === label) ?? found[0];
  const connect = () => {
    onClose();
    if (chosen) session.edit(...chosen.edits(name ?? chosen.name ?? ""));
  };
  const options = found.map((each) => [each.label, `${each.label} · ${each.note}`] as const);
  return (
    <Dialog title={task.title} onClose={onClose} submit="Connect" onSubmit={connect} disabled={!chosen}>
      <Search placeholder="Search" value={query} onChange={setQuery} />
      <Choose label="Connect to" size={8} options={options} value={chosen?.label ?? ""} onChange={setLabel} />
      {!chosen && <p className="soft">Nothing in this pipeline fits.</p>}
      {chosen?.name && (
        <label className="field">
          <span>Name</span>
          <input
            required
            pattern="[A-Za-z_]\w*"
            value={name ?? chosen.name}
            onChange={(event) => setName(event.target.value)}
          />
        </label>
      )}
    </Dialog>
  );
}

// Ask for a name, and close when it was taken.
export function Name(properties: {
  title: string;
  label: string;
  value: string;
  submit: string;
  done: (name: string) => Promise<unknown>;
  onClose: () => void;
}) {
  const { title, label, submit, done, onClose } = properties;
  const [name, setName] = useState(properties.value);
  const [error, setError] = useState<unknown>(null);
  const send = () => done(name.trim()).then(onClose, setError);
  return (
    <Dialog title={title} onClose={onClose} submit={submit} onSubmit={send} disabled={!name.trim()}>
      <Search type="text" placeholder={label} value={name} onChange={setName} />
      {error !== null && <Problem error={error} />}
    </Dialog>
  );
}

function Start({ onClose }: { onClose: () => void }) {
  const { document, session, select, follow, root } = useEditor();
  const { folder, path } = document;
  const start = async (inputs: object) => {
    await session.settle();
    const { run } = await post<{ run: string }>("/api/runs/start", { folder, path, inputs });
    show("The run was started.");
    select([]);
    follow(run);
  };
  const inputs = root?.inputs.map((port) => ({ name: port.name, port, value: port.value })) ?? [];
  return <RunDialog title={`Run ${document.display_name || document.name}`} {...{ inputs, start, onClose }} />;
}

const FORMS = [
  ["plan", "Dry run"],
  ["request", "Request"],
  ["submit", "Submit"],
  ["python", "Python"],
  ["yaml", "YAML"],
] as const;

function Export({ onClose }: { onClose: () => void }) {
  const { folder, path } = useEditor().document;
  const [form, setForm] = useState("plan");
  const { data, error } = useServer<{ text: string }>("/api/document/export", { folder, path, form });
  const copy = () => navigator.clipboard.writeText(data?.text ?? "").then(() => show("Copied."), show);
  return (
    <Dialog title={`${path} as text`} onClose={onClose}>
      <Switch label="Form" options={FORMS} value={form} onChange={setForm} />
      {error && <Problem error={error} />}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a text that scrolls is reached by Tab */}
      {!error && <pre tabIndex={0}>{data ? data.text : "Reading …"}</pre>}
      <Button text="Copy" disabled={!data} onClick={copy} />
    </Dialog>
  );
}
