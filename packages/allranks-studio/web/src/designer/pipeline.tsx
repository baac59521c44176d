// The form of the pipeline itself: its inputs, outputs and default compute.
import { useState } from "react";
import type { Edit, Graph } from "../api";
import { Button, Choose, Search } from "../controls";
import { about, Field, type Plain } from "./controls";
import { useEditor } from "./editor";
import { Compute, Findings } from "./form";
import { freeName, hue, isData, shown, TYPES } from "./ports";

export function PipelineForm() {
  const { document, graph, view, editable, run } = useEditor();
  const verdict = run?.run.verdict;
  const inputs = graph?.inputs.map((port) => {
    const words = [port.type, port.optional && "optional", about(port), port.value && `= ${shown(port.value)}`];
    return { ...port, text: words.filter(Boolean).join(" · ") };
  });
  const outputs = graph?.outputs.map((port) => ({ ...port, text: shown(port.value) }));
  return (
    <>
      <h2>{view || document.display_name || document.name || document.path}</h2>
      {!view && document.description && <p>{document.description}</p>}
      {verdict && (
        <div className="problem">
          <b>{verdict.rank === null ? verdict.step : `${verdict.step}, rank ${verdict.rank}`}</b>
          <p>{verdict.reason}</p>
          <small>{verdict.advice}</small>
        </div>
      )}
      <Findings findings={document.findings.filter((each) => each.node.startsWith(view))} />
      <Ports kind="input" ports={inputs ?? []} />
      {editable && graph && <NewInput graph={graph} />}
      <Ports kind="output" ports={outputs ?? []} />
      {editable && graph && <NewOutput graph={graph} />}
      {!view && (
        <fieldset>
          <legend>Place</legend>
          <Compute node={null} label="Default compute" />
        </fieldset>
      )}
    </>
  );
}

function Ports({ kind, ports }: { kind: "input" | "output"; ports: { name: string; type: string; text: string }[] }) {
  const { view, editable, session } = useEditor();
  const remove = (name: string) => {
    const op = kind === "input" ? "delete_input" : "delete_output";
    session.edit(`Deleted ${kind} ${name}.`, { op, graph: view, name });
  };
  return (
    <fieldset>
      <legend>{kind === "input" ? "Inputs" : "Outputs"}</legend>
      <ul className="plain-list">
        {ports.map(({ name, type, text }) => (
          <li key={name}>
            <span className={hue(type)}>{name}</span>
            <small>{text}</small>
            <Button text="×" name={`Delete ${kind} ${name}`} disabled={!editable} onClick={() => remove(name)} />
          </li>
        ))}
      </ul>
    </fieldset>
  );
}

function NewInput({ graph }: { graph: Graph }) {
  const { view, session } = useEditor();
  const [name, setName] = useState("");
  const [type, setType] = useState("integer");
  const [value, setValue] = useState<Plain>(null);
  const add = () => {
    const edit: Edit = { op: "add_input", graph: view, name: freeName(graph, name.trim()), type, default: value };
    session.edit(`Added input ${edit.name}.`, edit);
    setName("");
    setValue(null);
  };
  return (
    <div className="new">
      <Search type="text" placeholder="Name of the new input" value={name} onChange={setName} />
      <Choose label="Type of the new input" options={TYPES} value={type} onChange={setType} />
      {name && !isData(type) && <Field label="Default" port={{ type }} value={value} onChange={setValue} />}
      <Button text="Add input" disabled={!name.trim()} onClick={add} />
    </div>
  );
}

function NewOutput({ graph }: { graph: Graph }) {
  const { view, session } = useEditor();
  const [source, setSource] = useState("");
  const outputs = graph.nodes.flatMap((node) => node.outputs.map((port) => `${node.name}.${port.name}`));
  const choices = [["", "New output of …"] as const, ...outputs];
  const [node = "", port = ""] = source.split(".");
  const name = graph.outputs.some((each) => each.name === port) ? `${node}_${port}` : port;
  const add = () => {
    session.edit(`Added output ${name}.`, { op: "add_output", graph: view, name, node, port });
    setSource("");
  };
  return (
    <div className="new">
      <Choose label="Source of the new output" options={choices} value={source} onChange={setSource} />
      <Button text={`Add output ${name}`} disabled={!source} onClick={add} />
    </div>
  );
}
