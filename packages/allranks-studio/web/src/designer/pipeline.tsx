// The form of the pipeline itself: its inputs, outputs and default compute.
import { useState } from "react";
import type { Edit } from "../api";
import { freeName, useEditor } from "./editor";
import { bounds, Control, PLAIN, type Plain, TextField } from "./fields";
import { Findings } from "./form";
import { hue, isData, shown, TYPES } from "./ports";

export function PipelineForm() {
  const { document, graph, view, editable, session, run } = useEditor();
  const send = (edit: Edit, said: string) => void session.edit([edit], said);
  return (
    <>
      <h2>{view || document.display_name || document.name || document.path}</h2>
      {!view && document.description && <p>{document.description}</p>}
      {run?.run.verdict && (
        <div className="verdict">
          <b>
            {run.run.verdict.step}
            {run.run.verdict.rank !== null && `, rank ${run.run.verdict.rank}`}
          </b>
          <p>{run.run.verdict.reason}</p>
          <small>{run.run.verdict.advice}</small>
        </div>
      )}
      <Findings findings={view ? document.findings.filter((each) => each.node.startsWith(view)) : document.findings} />
      <fieldset>
        <legend>Inputs</legend>
        <ul className="plain-list">
          {graph?.inputs.map((port) => (
            <li key={port.name}>
              <span className={hue(port.type)}>{port.name}</span>
              <small>
                {[port.type, bounds(port), port.optional ? "optional" : ""].filter(Boolean).join(", ")}
                {port.value && ` = ${shown(port.value)}`}
              </small>
              <button
                type="button"
                disabled={!editable}
                aria-label={`Delete input ${port.name}`}
                onClick={() =>
                  send({ op: "delete_input", graph: view, name: port.name }, `Deleted input ${port.name}.`)
                }
              >
                ×
              </button>
            </li>
          ))}
        </ul>
        {editable && <NewInput onAdd={(edit) => send(edit, "Added an input.")} />}
      </fieldset>
      <fieldset>
        <legend>Outputs</legend>
        <ul className="plain-list">
          {graph?.outputs.map((port) => (
            <li key={port.name}>
              <span className={hue(port.type)}>{port.name}</span>
              <small>{shown(port.value)}</small>
              <button
                type="button"
                disabled={!editable}
                aria-label={`Delete output ${port.name}`}
                onClick={() =>
                  send({ op: "delete_output", graph: view, name: port.name }, `Deleted output ${port.name}.`)
                }
              >
                ×
              </button>
            </li>
          ))}
        </ul>
        {editable && <NewOutput onAdd={(edit) => send(edit, "Added an output.")} />}
      </fieldset>
      {!view && (
        <TextField
          label="Default compute"
          value={document.compute}
          disabled={!editable}
          onChange={(compute) => send({ op: "set_compute", node: "", compute }, `Default compute ${compute}.`)}
        />
      )}
    </>
  );
}

function NewInput({ onAdd }: { onAdd: (edit: Edit) => void }) {
  const { view, graph } = useEditor();
  const [name, setName] = useState("");
  const [type, setType] = useState("integer");
  const [value, setValue] = useState<Plain>(null);
  const add = () => {
    onAdd({ op: "add_input", graph: view, name: freeName(graph, name.trim()), type, default: value });
    setName("");
    setValue(null);
  };
  return (
    <div className="new">
      <input
        aria-label="Name of the new input"
        placeholder="New input"
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <select aria-label="Type of the new input" value={type} onChange={(event) => setType(event.target.value)}>
        {TYPES.map((each) => (
          <option key={each}>{each}</option>
        ))}
      </select>
      {name && !isData(type) && (
        <>
          <label htmlFor="new-default">Default</label>
          <Control id="new-default" port={{ ...PLAIN, type }} value={value} onChange={setValue} />
        </>
      )}
      <button type="button" disabled={!name.trim()} onClick={add}>
        Add input
      </button>
    </div>
  );
}

function NewOutput({ onAdd }: { onAdd: (edit: Edit) => void }) {
  const { view, graph } = useEditor();
  const [source, setSource] = useState("");
  const choices = (graph?.nodes ?? []).flatMap((node) => node.outputs.map((port) => `${node.name}.${port.name}`));
  if (!choices.length) return null;
  const [node = "", port = ""] = source.split(".");
  const taken = new Set(graph?.outputs.map((each) => each.name));
  const name = taken.has(port) ? `${node}_${port}` : port;
  return (
    <div className="new">
      <select aria-label="Source of the new output" value={source} onChange={(event) => setSource(event.target.value)}>
        <option value="">New output of …</option>
        {choices.map((each) => (
          <option key={each}>{each}</option>
        ))}
      </select>
      <button
        type="button"
        disabled={!source}
        onClick={() => {
          onAdd({ op: "add_output", graph: view, name, node, port });
          setSource("");
        }}
      >
        {source ? `Add output ${name}` : "Add output"}
      </button>
    </div>
  );
}
