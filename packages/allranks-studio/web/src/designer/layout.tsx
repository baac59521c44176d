// The layout of a step as a picture: a box for each instance, a cell for each process.
import type { Layout, Node, Value } from "../api";
import { useEditor } from "./editor";
import { Control, PLAIN } from "./fields";
import { shown } from "./ports";

const DISTRIBUTIONS: Layout["distribution"][] = ["none", "pytorch", "mpi", "tensorflow", "ray"];
const MOST_INSTANCES = 12;
const MOST_CELLS = 16;

export function LayoutForm({ node, layout }: { node: Node; layout: Layout }) {
  const { session, editable, graph } = useEditor();
  const disabled = !editable || node.lock !== null;
  const [instances, processes] = [countOf(layout.instances), countOf(layout.processes)];
  const change = (changes: { instances?: Value; processes?: Value }) => {
    const { instances, processes } = { ...layout, ...changes };
    void session.edit(
      [{ op: "set_layout", node: node.path, instances, processes }],
      `${node.name} runs on ${shown(instances)} × ${shown(processes)}.`,
    );
  };
  const total = instances !== null && processes !== null ? instances * processes : null;
  const size = layout.size
    ? `${layout.size}${layout.gpus ? `, ${layout.gpus} GPUs each` : ", no GPUs"}`
    : "size not given";
  const inputs = (graph?.inputs ?? []).filter((port) => port.type === "integer").map((port) => port.name);
  return (
    <fieldset>
      <legend>Layout</legend>
      <Picture instances={instances ?? 1} processes={processes ?? 1} gpus={layout.gpus} isOpen={total === null} />
      <p className="soft">
        {shown(layout.instances)} × {shown(layout.processes)}
        {total !== null && ` = ${total} rank${total === 1 ? "" : "s"}`} · {size}
      </p>
      <div className="pair">
        <Count
          label="Instances"
          value={layout.instances}
          inputs={inputs}
          disabled={disabled}
          onChange={(value) => change({ instances: value })}
        />
        <Count
          label="Processes per instance"
          value={layout.processes}
          inputs={inputs}
          disabled={disabled}
          onChange={(value) => change({ processes: value })}
        />
      </div>
      <div className="field">
        <label htmlFor="distribution">Distribution</label>
        <select
          id="distribution"
          value={layout.distribution}
          disabled={disabled}
          onChange={(event) =>
            void session.edit(
              [{ op: "set_distribution", node: node.path, distribution: event.target.value }],
              `Distribution ${event.target.value}.`,
            )
          }
        >
          {DISTRIBUTIONS.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
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
  const isOther = value.kind === "expression" || value.kind === "output";
  const id = `count-${label}`;
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {value.kind === "literal" && (
        <Control
          id={id}
          port={{ ...PLAIN, type: "integer", minimum: 1 }}
          value={value.value}
          disabled={disabled}
          onChange={(count) => count !== null && onChange({ kind: "literal", value: count })}
        />
      )}
      {isOther && <code>{shown(value)}</code>}
      {!isOther && inputs.length > 0 && (
        <select
          {...(value.kind === "input" ? { id } : { "aria-label": `${label} from` })}
          value={value.kind === "input" ? value.name : ""}
          disabled={disabled}
          onChange={(event) =>
            onChange(event.target.value ? { kind: "input", name: event.target.value } : { kind: "literal", value: 1 })
          }
        >
          <option value="">a number</option>
          {inputs.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      )}
    </div>
  );
}

function Picture(properties: { instances: number; processes: number; gpus: number; isOpen: boolean }) {
  const { instances, processes, gpus, isOpen } = properties;
  const shownInstances = Math.min(instances, MOST_INSTANCES);
  const cells = Math.min(Math.max(processes, gpus), MOST_CELLS);
  const range = (count: number) => Array.from({ length: count }, (_, index) => index);
  const title = `${instances} instance${instances === 1 ? "" : "s"} with ${processes} process${processes === 1 ? "" : "es"} each`;
  return (
    <div
      className={`picture ${isOpen ? "unknown" : ""}`}
      role="img"
      aria-label={isOpen ? "The counts are inputs of the pipeline" : title}
    >
      {range(shownInstances).map((instance) => (
        <span key={instance} className="instance">
          {range(cells).map((cell) => (
            <i key={cell} className={cell >= processes ? "idle" : gpus && cell >= gpus ? "over" : ""} />
          ))}
          {processes > MOST_CELLS && <small>+{processes - MOST_CELLS}</small>}
        </span>
      ))}
      {instances > shownInstances && <small>+{instances - shownInstances}</small>}
    </div>
  );
}
