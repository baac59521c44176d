// The layout of a step as a picture: a box for each instance, a cell for each process.
import type { Layout, Node, Value } from "../api";
import { Choose } from "../controls";
import { count } from "../format";
import { Field, type Plain } from "./controls";
import { useEditor } from "./editor";
import { graphAt, parentOf, shown } from "./ports";

const DISTRIBUTIONS: Layout["distribution"][] = ["none", "pytorch", "mpi", "tensorflow", "ray"];
const MOST_INSTANCES = 12;
const MOST_CELLS = 16;
const COUNT = { type: "integer", minimum: 1 };

interface Properties {
  node: Node;
  layout: Layout;
}

export function LayoutForm({ node, layout }: Properties) {
  const { session, editable } = useEditor();
  const [instances, processes] = [countOf(layout.instances), countOf(layout.processes)];
  const total = instances && processes ? `= ${count(instances * processes, "rank")}` : "";
  const size = layout.size ? `${layout.size}, ${count(layout.gpus, "GPU")} each` : "size not given";
  const change = (distribution: string) =>
    session.edit(`Distribution ${distribution}.`, { op: "set_distribution", node: node.path, distribution });
  const choice = { label: "Distribution", options: DISTRIBUTIONS, disabled: !editable || node.lock !== null };
  return (
    <fieldset>
      <legend>Layout</legend>
      <Picture instances={instances} processes={processes} gpus={layout.gpus} />
      <p className="soft">{`${shown(layout.instances)} × ${shown(layout.processes)} ${total} · ${size}`}</p>
      <div className="pair">
        <Count node={node} layout={layout} which="instances" label="Instances" />
        <Count node={node} layout={layout} which="processes" label="Processes per instance" />
      </div>
      <b>Distribution</b>
      <Choose {...choice} value={layout.distribution} onChange={change} />
    </fieldset>
  );
}

const countOf = (value: Value) => (value.kind === "literal" && typeof value.value === "number" ? value.value : null);

// A number, or an input of the pipeline.
function Count({ node, layout, which, label }: Properties & { which: "instances" | "processes"; label: string }) {
  const { session, editable, root } = useEditor();
  const value = layout[which];
  const disabled = !editable || node.lock !== null;
  const ports = graphAt(root, parentOf(node.path))?.inputs.filter((port) => port.type === "integer");
  const change = (to: Value) => {
    const { instances, processes }: Layout = { ...layout, [which]: to };
    session.edit(`${label} of ${node.name}: ${shown(to)}.`, {
      op: "set_layout",
      node: node.path,
      instances,
      processes,
    });
  };
  const setNumber = (to: Plain) => to !== null && change({ kind: "literal", value: to });
  const bind = (name: string) => change(name ? { kind: "input", name } : { kind: "literal", value: 1 });
  const choices = [["", "a number"] as const, ...(ports ?? []).map((port) => port.name)];
  const shared = { label, disabled };
  if (value.kind === "expression" || value.kind === "output") return <code>{shown(value)}</code>;
  return (
    <div>
      {value.kind === "input" && <b>{label}</b>}
      {value.kind === "literal" && <Field {...shared} port={COUNT} value={value.value} onChange={setNumber} />}
      {choices.length > 1 && (
        <Choose
          {...shared}
          label={`${label} from`}
          options={choices}
          value={value.kind === "input" ? value.name : ""}
          onChange={bind}
        />
      )}
    </div>
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
