// The form of the pipeline itself: its inputs, outputs and default compute.
import type { Graph } from "../api";
import { Button } from "../controls";
import { about, plain } from "../fields";
import { useEditor } from "./editor";
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
  const { session } = useEditor();
  const inputs = graph.inputs.map((port) => {
    const value = plain(port.value);
    const words = [port.type, port.optional && "optional", about(port), value !== null && `= ${value}`];
    return { ...port, text: words.filter(Boolean).join(" · ") };
  });
  const outputs = graph.outputs.map((port) => ({ ...port, text: shown(port.value) }));
  const remove = (kind: "input" | "output") => (name: string) =>
    session.edit({ op: `delete_${kind}`, graph: path, name });
  const where = path && " of the pipeline inside";
  return (
    <>
      <List title={`Inputs${where}`} ports={inputs} symbol="×" verb="Delete input" act={remove("input")} />
      <List title={`Outputs${where}`} ports={outputs} symbol="×" verb="Delete output" act={remove("output")} />
    </>
  );
}

// Ports with what can be done with each.
export function List(properties: {
  title: string;
  ports: { name: string; type: string; text: string }[];
  symbol: string;
  verb: string;
  act: (name: string) => void;
}) {
  const { title, ports, symbol, verb, act } = properties;
  const { editable } = useEditor();
  return (
    <fieldset>
      <legend>{title}</legend>
      {!ports.length && <p className="soft">None</p>}
      <ul className="plain-list">
        {ports.map(({ name, type, text }) => (
          <li key={name}>
            <span className={hue(type)}>{name}</span>
            <small>{text}</small>
            <Button text={symbol} name={`${verb} ${name}`} disabled={!editable} onClick={() => act(name)} />
          </li>
        ))}
      </ul>
    </fieldset>
  );
}
