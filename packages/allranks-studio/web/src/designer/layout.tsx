// The layout of a step as a picture: a box for each instance, a cell for each process.
import type { Layout, Node, Value } from "../api";
import { Choose, Field } from "./controls";
import { useEditor } from "./editor";
import { graphAt, parentOf, shown } from "./ports";

const DISTRIBUTIONS: Layout["distribution"][] = ["none", "pytorch", "mpi", "tensorflow", "ray"];
const MOST_INSTANCES = 12;
const MOST_CELLS = 16;

export function LayoutForm({ node, layout }: { node: Node; layout: Layout }) {
  const { session, editable, root } = useEditor();
  const disabled = !editable || node.lock !== null;
  const [instances, processes] = [countOf(layout.instances), countOf(layout.processes)];
  const change = (to: { instances: Value; processes: Value }) => {
    const said = `${node.name} runs on ${shown(to.instances)} × ${shown(to.processes)}.`;
    session.edit(said, { op: "set_layout", node: node.path, ...to });
  };
  const total = instances !== null && processes !== null ? instances * processes : null;
  const gpus = layout.gpus ? `, ${layout.gpus} GPUs each` : ", no GPUs";
  const inputs = graphAt(root, parentOf(node.path))?.inputs.filter((port) => port.type === "integer") ?? [];
  const count = (label: string, value: Value, onChange: (value: Value) => void) => (
    <Count {...{ label, value, onChange, disabled }} inputs={inputs.map((port) => port.name)} />
  );
  return (
    <fieldset>
      <legend>Layout</legend>
      <Picture instances={instances} processes={processes} gpus={layout.gpus} />
      <p className="soft">
        {shown(layout.instances)} × {shown(layout.processes)}
        {total !== null && ` = ${total} rank${total === 1 ? "" : "s"}`} · {layout.size || "size not given"}
        {layout.size && gpus}
      </p>
      <div className="pair">
        {count("Instances", layout.instances, (value) => change({ instances: value, processes: layout.processes }))}
        {count("Processes per instance", layout.processes, (value) =>
          change({ instances: layout.instances, processes: value }),
        )}
      </div>
      <div className="field">
        <span>Distribution</span>
        <Choose
          label="Distribution"
          options={DISTRIBUTIONS}
          value={layout.distribution}
          disabled={disabled}
          onChange={(distribution) =>
            session.edit(`Distribution ${distribution}.`, { op: "set_distribution", node: node.path, distribution })
          }
        />
      </div>
    </fieldset>
  );
}

const countOf = (value: Value) => (value.kind === "literal" && typeof value.value === "number" ? value.value : null);

// A number, or an input of the pipeline.
function Count(properties: {
  label: string;
  value: Value;
  inputs: string[];
  disabled: boolean;
  onChange: (value: Value) => void;
}) {
  const { label, value, inputs, disabled, onChange } = properties;
  if (value.kind === "expression" || value.kind === "output") return <code>{shown(value)}</code>;
  return (
    <div>
      {value.kind === "literal" ? (
        <Field
          label={label}
          port={{ type: "integer", minimum: 1 }}
          value={value.value}
          disabled={disabled}
          onChange={(count) => count !== null && onChange({ kind: "literal", value: count })}
        />
      ) : (
        <b>{label}</b>
      )}
      {(inputs.length > 0 || value.kind === "input") && (
        <Choose
          label={`${label} from`}
          options={[["", "a number"], ...inputs]}
          value={value.kind === "input" ? value.name : ""}
          disabled={disabled}
          onChange={(name) => onChange(name ? { kind: "input", name } : { kind: "literal", value: 1 })}
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
