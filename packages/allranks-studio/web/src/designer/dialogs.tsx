// Dialogs: what to connect, a name, inputs of a run, exports.
import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import { Button, Search, Switch } from "../controls";
import { Dialog, Problem, show } from "../parts";
import { post, useServer } from "../server";
import { Field, type Plain, walk } from "./controls";
import { type Task, useEditor } from "./editor";
import type { Choice } from "./ports";

export function Dialogs() {
  const { task, ask, opener } = useEditor();
  const onClose = () => ask(null);
  useEffect(() => {
    if (!task) opener.current?.focus(); // where the user was before the dialog
  }, [task, opener]);
  if (task?.kind === "connect") return <Connect task={task} onClose={onClose} />;
  if (task?.kind === "name") return <Name task={task} onClose={onClose} />;
  if (task?.kind === "run") return <RunDialog onClose={onClose} />;
  return task && <Export onClose={onClose} />;
}

interface Properties<T> {
  task: T;
  onClose: () => void;
}

function Connect({ task, onClose }: Properties<Extract<Task, { kind: "connect" }>>) {
  const { session } = useEditor();
  const [query, setQuery] = useState("");
  const list = useRef<HTMLDivElement>(null);
  const found = task.choices.filter((each) => each.label.toLowerCase().includes(query.toLowerCase()));
  const choose = (choice: Choice | undefined) => {
    onClose();
    if (choice) session.edit(`${task.title} to ${choice.label}.`, ...choice.edits);
  };
  const { title } = task;
  const step = (event: KeyboardEvent) => walk(event, list.current, "input, .choices button");
  return (
    <Dialog title={title} onClose={onClose} submit="Connect" onSubmit={() => choose(found[0])} disabled={!found.length}>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the arrow keys are a shortcut of Tab */}
      <div ref={list} onKeyDown={step}>
        <Search placeholder="Search, Enter takes the first" value={query} onChange={setQuery} />
        <ul className="choices">
          {found.map((choice) => (
            <li key={choice.label}>
              <button type="button" className="plain" onClick={() => choose(choice)}>
                <b>{choice.label}</b> <small>{choice.note}</small>
              </button>
            </li>
          ))}
        </ul>
      </div>
      {!found.length && <p className="soft">Nothing in this pipeline fits.</p>}
    </Dialog>
  );
}

function Name({ task, onClose }: Properties<Extract<Task, { kind: "name" }>>) {
  const [name, setName] = useState(task.value);
  const submit = () => {
    onClose();
    task.done(name.trim());
  };
  return (
    <Dialog title={task.title} onClose={onClose} submit={task.submit} onSubmit={submit} disabled={!name.trim()}>
      <Search type="text" placeholder="Name" value={name} onChange={setName} />
    </Dialog>
  );
}

function RunDialog({ onClose }: { onClose: () => void }) {
  const { document, session, select, follow, root } = useEditor();
  const { folder, path } = document;
  const [values, setValues] = useState<Record<string, Plain>>({});
  const [error, setError] = useState<unknown>(null);
  const [isStarting, setStarting] = useState(false);
  const start = async () => {
    setStarting(true);
    const inputs = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null));
    try {
      await session.settle();
      const { run } = await post<{ run: string }>("/api/runs/start", { folder, path, inputs });
      session.say("The run was started.");
      select([]);
      follow(run);
      onClose();
    } catch (problem) {
      setError(problem);
      setStarting(false);
    }
  };
  return (
    <Dialog
      title={`Run ${document.display_name || document.name}`}
      onClose={onClose}
      submit={isStarting ? "Starting …" : "Run"}
      disabled={isStarting}
      onSubmit={start}
    >
      {root?.inputs.map((port) => (
        <Field
          key={port.name}
          label={port.name}
          port={{ ...port, default: port.value?.kind === "literal" ? port.value.value : port.default }}
          value={values[port.name] ?? null}
          onChange={(value) => setValues({ ...values, [port.name]: value })}
        />
      ))}
      {!root?.inputs.length && <p className="soft">The pipeline has no inputs.</p>}
      {error !== null && <Problem error={error} />}
    </Dialog>
  );
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
