// The form of the pipeline itself: its inputs, outputs and default compute.
import type { ReactNode } from "react";
import type { Graph } from "../api";
import { Button } from "../controls";
import { useEditor } from "./editor";
import { about } from "./fields";
import { Compute, Findings } from "./form";
import { hue, shown } from "./ports";

export function PipelineForm() {
  const { document, root, run } = useEditor();
  const verdict = run?.run.verdict;
  return (
    <>
      <h2>{document.display_name || document.name || document.path}</h2>
      {document.description && <p>{document.description}</p>}
      {verdict && (
        <div className="problem">
          <b>{verdict.rank === null ? verdict.step : `${verdict.step}, rank ${verdict.rank}`}</b>
          <p>{verdict.reason}</p>
          <small>{verdict.advice}</small>
        </div>
      )}
      <Findings findings={document.findings} />
      {root && <Ports graph={root} path="" />}
      <fieldset>
        <legend>Place</legend>
        <Compute node={null} label="Default compute" />
      </fieldset>
    </>
  );
}

// The inputs and outputs that a pipeline declares.
export function Ports({ graph, path }: { graph: Graph; path: string }) {
  const { editable, session } = useEditor();
  const inputs = graph.inputs.map((port) => {
    const words = [port.type, port.optional && "optional", about(port), port.value && `= ${shown(port.value)}`];
    return { ...port, text: words.filter(Boolean).join(" · ") };
  });
  const outputs = graph.outputs.map((port) => ({ ...port, text: shown(port.value) }));
  const remove = (kind: "input" | "output", name: string) => (
    <Button
      text="×"
      name={`Delete ${kind} ${name}`}
      disabled={!editable}
      onClick={() => session.edit({ op: `delete_${kind}`, graph: path, name })}
    />
  );
  return (
    <>
      <List title={path ? "Inputs of the pipeline inside" : "Inputs"} ports={inputs}>
        {({ name }) => remove("input", name)}
      </List>
      <List title={path ? "Outputs of the pipeline inside" : "Outputs"} ports={outputs}>
        {({ name }) => remove("output", name)}
      </List>
    </>
  );
}

interface Listed {
  name: string;
  type: string;
  text: string;
}

// Ports with what can be done with each.
export function List<P extends Listed>(properties: { title: string; ports: P[]; children: (port: P) => ReactNode }) {
  const { title, ports, children } = properties;
  return (
    <fieldset>
      <legend>{title}</legend>
      <ul className="plain-list">
        {ports.map((port) => (
          <li key={port.name}>
            <span className={hue(port.type)}>{port.name}</span>
            <small>{port.text}</small>
            {children(port)}
          </li>
        ))}
      </ul>
    </fieldset>
  );
}
