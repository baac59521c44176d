// Dialogs: what to connect, a name, inputs of a run, exports.
import { useId, useRef, useState } from "react";
import type { Document, Edit } from "../api";
import { Dialog, Problem, show } from "../parts";
import { post, useServer } from "../server";
import { freeName, type Task, useEditor } from "./editor";
import { bounds, Control, type Plain } from "./fields";
import { type Choice, parentOf } from "./ports";

export function Dialogs() {
  const { task, ask } = useEditor();
  const close = () => ask(null);
  switch (task?.kind) {
    case "connect":
      return <Connect task={task} onClose={close} />;
    case "name":
      return <Name task={task} onClose={close} />;
    case "run":
      return <RunDialog onClose={close} />;
    case "export":
      return <Export onClose={close} />;
    default:
      return null;
  }
}

function Connect({ task, onClose }: { task: Extract<Task, { kind: "connect" }>; onClose: () => void }) {
  const { set, session, graph } = useEditor();
  const [query, setQuery] = useState("");
  const list = useRef<HTMLUListElement>(null);
  const found = task.choices.filter((each) => each.label.toLowerCase().includes(query.toLowerCase()));
  const choose = (choice: Choice | undefined) => {
    if (!choice) return;
    onClose();
    set(choice.node, choice.input.name, choice.value);
  };
  const promote = () => {
    const port = task.promote?.node.inputs.find((each) => each.name === task.promote?.input);
    if (!task.promote || !port) return;
    const { node } = task.promote;
    const name = freeName(graph, port.name);
    const value = port.value?.kind === "literal" ? port.value.value : port.default;
    const edits: Edit[] = [
      { op: "add_input", graph: parentOf(node.path), name, type: port.type, default: value },
      { op: "set_input", node: node.path, input: port.name, value: { kind: "input", name } },
    ];
    onClose();
    void session.edit(edits, `${port.name} is an input of the pipeline.`);
  };
  return (
    <Dialog
      title={task.title}
      onClose={onClose}
      submit="Connect"
      onSubmit={() => choose(found[0])}
      disabled={!found.length}
    >
      <input
        type="search"
        aria-label="Search"
        placeholder="Search, Enter takes the first"
        value={query}
        onChange={(event) => setQuery(event.target.value)}
        onKeyDown={(event) => event.key === "ArrowDown" && list.current?.querySelector("button")?.focus()}
      />
      <ul className="choices" ref={list}>
        {found.map((choice) => (
          <li key={choice.label}>
            <button type="button" className="plain" onClick={() => choose(choice)} onKeyDown={stepThrough}>
              <b>{choice.label}</b> <small>{choice.note}</small>
            </button>
          </li>
        ))}
        {task.promote && (
          <li>
            <button type="button" className="plain" onClick={promote} onKeyDown={stepThrough}>
              <b>New pipeline input</b> <small>{task.promote.input}</small>
            </button>
          </li>
        )}
      </ul>
      {!found.length && <p className="soft">Nothing in this pipeline fits.</p>}
    </Dialog>
  );
}

function stepThrough(event: { key: string; currentTarget: HTMLElement; preventDefault: () => void }): void {
  const item = event.currentTarget.parentElement;
  const next =
    event.key === "ArrowDown"
      ? item?.nextElementSibling
      : event.key === "ArrowUp"
        ? item?.previousElementSibling
        : null;
  next?.querySelector("button")?.focus();
  if (next) event.preventDefault();
}

function Name({ task, onClose }: { task: Extract<Task, { kind: "name" }>; onClose: () => void }) {
  const [name, setName] = useState(task.value);
  const id = useId();
  const submit = () => {
    onClose();
    if (name !== task.value || task.submit !== "Rename") task.done(name.trim());
  };
  return (
    <Dialog title={task.title} onClose={onClose} submit={task.submit} onSubmit={submit} disabled={!name.trim()}>
      <label htmlFor={id}>Name</label>
      <input
        id={id}
        value={name}
        onChange={(event) => setName(event.target.value)}
        onFocus={(event) => event.target.select()}
      />
    </Dialog>
  );
}

function RunDialog({ onClose }: { onClose: () => void }) {
  const { document, session, follow, root } = useEditor();
  const [values, setValues] = useState<Record<string, Plain>>({});
  const [error, setError] = useState<unknown>(null);
  const [isStarting, setStarting] = useState(false);
  const id = useId();
  const start = async () => {
    setStarting(true);
    session.flush();
    const inputs = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null));
    try {
      const { run } = await post<{ run: string }>("/api/runs/start", {
        folder: document.folder,
        path: document.path,
        inputs,
      });
      session.say("The run was started.");
      follow(run);
      onClose();
    } catch (problem) {
      setError(problem);
      setStarting(false);
    }
  };
  const errors = document.findings.filter((each) => each.level === "error").length;
  return (
    <Dialog
      title={`Run ${document.display_name || document.name}`}
      onClose={onClose}
      submit={isStarting ? "Starting …" : "Run"}
      disabled={isStarting}
      onSubmit={() => void start()}
    >
      {errors > 0 && <p className="wrong">{errors} errors were found: the run will not start before they are fixed.</p>}
      {root?.inputs.map((port) => (
        <div key={port.name} className="field">
          <label htmlFor={id + port.name}>{port.name}</label>
          <Control
            id={id + port.name}
            port={port}
            value={values[port.name] ?? null}
            onChange={(value) => setValues({ ...values, [port.name]: value })}
          />
          <small>{[port.type, port.description, bounds(port)].filter(Boolean).join(" · ")}</small>
        </div>
      ))}
      {!root?.inputs.length && <p className="soft">The pipeline has no inputs.</p>}
      {error !== null && <Problem error={error} />}
    </Dialog>
  );
}

const FORMS = [
  ["python", "Python"],
  ["yaml", "YAML"],
  ["plan", "Dry run"],
  ["request", "Request"],
  ["submit", "Submit"],
] as const;

function Export({ onClose }: { onClose: () => void }) {
  const { document } = useEditor();
  const [form, setForm] = useState<string>("plan");
  return (
    <Dialog title={`${document.path} as text`} onClose={onClose}>
      <div className="group">
        {FORMS.map(([name, title]) => (
          <button key={name} type="button" aria-pressed={form === name} onClick={() => setForm(name)}>
            {title}
          </button>
        ))}
      </div>
      <ExportText key={form} document={document} form={form} />
    </Dialog>
  );
}

function ExportText({ document, form }: { document: Document; form: string }) {
  const { folder, path } = document;
  const { data, error } = useServer<{ text: string }>("/api/document/export", { folder, path, form });
  if (error) return <Problem error={error} />;
  if (!data) return <p role="status">Reading …</p>;
  const copy = () => navigator.clipboard.writeText(data.text).then(() => show("Copied."), show);
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a text that scrolls is reached by Tab */}
      <pre className="export" tabIndex={0}>
        {data.text}
      </pre>
      <button type="button" onClick={() => void copy()}>
        Copy
      </button>
    </>
  );
}
