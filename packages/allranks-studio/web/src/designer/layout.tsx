// The layout of a step as a picture: a box for each instance, a cell for each process.
import type { Edit, Layout, Node, Value } from "../api";
import { Choose } from "../controls";
import { Field, PLAIN, plain } from "../fields";
import { count } from "../format";
import { useEditor } from "./editor";
import { origins, shown } from "./ports";

const DISTRIBUTIONS: Layout["distribution"][] = ["none", "pytorch", "mpi", "tensorflow", "ray"];
const MOST_INSTANCES = 12;
const MOST_CELLS = 16;
const COUNT = { ...PLAIN, type: "integer", minimum: 1, line: 0, locked: "" };

interface Properties {
  node: Node;
  layout: Layout;
}

export function LayoutForm({ node, layout }: Properties) {
  const { session, editable } = useEditor();
  const [instances, processes] = [countOf(layout.instances), countOf(layout.processes)];
  const total = instances && processes ? `= ${count(instances * processes, "rank")}` : "";
  const size = layout.size ? `${layout.size}, ${count(layout.gpus, "GPU")} each` : "size not given";
  const change = (distribution: string) => session.edit({ op: "set_distribution", node: node.path, distribution });
  const choice = { label: "Distribution", options: DISTRIBUTIONS, disabled: !editable || node.lock !== null };
  return (
    <fieldset>
      <legend>Layout</legend>
      <Picture instances={instances} processes={processes} gpus={layout.gpus} />
      <p className="soft">{`${shown(layout.instances)} × ${shown(layout.processes)} ${total} · ${size}`}</p>
      <Count node={node} layout={layout} which="instances" label="Instances" />
      <Count node={node} layout={layout} which="processes" label="Processes per instance" />
      <b>Distribution</b>
      <Choose {...choice} value={layout.distribution} onChange={change} />
    </fieldset>
  );
}

const countOf = (value: Value) => Number(plain(value)) || null;

// A number, or an input of the pipeline.
function Count({ node, layout, which, label }: Properties & { which: "instances" | "processes"; label: string }) {
  const { session, root, editable, connect } = useEditor();
  const { instances, processes } = layout;
  const set = (value: Value): Edit => ({ op: "set_layout", node: node.path, instances, processes, [which]: value });
  const port = { ...COUNT, name: which, value: layout[which] };
  return (
    <Field
      label={label}
      port={port}
      value={port.value}
      disabled={!editable || node.lock !== null || port.value.kind === "expression"}
      onChange={(value) => session.edit(set(value ?? { kind: "literal", value: 1 }))}
      onConnect={() => connect(node, port, origins(root, node, port, set))}
    />
  );
}

function Picture({ instances, processes, gpus }: { instances: number | null; processes: number | null; gpus: number }) {
  const [boxes, used] = [instances ?? 1, processes ?? 1];
  const cells = Math.min(Math.max(used, gpus), MOST_CELLS);
  const range = (length: number) => Array.from({ length }, (_, index) => index);
  const isKnown = instances !== null && processes !== null;
  const title = isKnown ? `Instances: ${boxes}, processes of each: ${used}` : "The counts are inputs of the pipeline";
  return (
    <div className={`picture ${isKnown ? "" : "unknown"}`} role="img" aria-label={title}>
      {range(Math.min(boxes, MOST_INSTANCES)).map((instance) => (
        <span key={instance} className="instance">
          {range(cells).map((cell) => (
            <i key={cell} className={cell >= used ? "idle" : gpus && cell >= gpus ? "over" : ""} />
          ))}
          {used > MOST_CELLS && <small>+{used - MOST_CELLS}</small>}
        </span>
      ))}
      {boxes > MOST_INSTANCES && <small>+{boxes - MOST_INSTANCES}</small>}
    </div>
  );
}
