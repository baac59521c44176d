// The right side: the inputs and settings of the node that is selected, or of the pipeline.
import { useId, useState } from "react";
import type { Finding, InputPort, Node } from "../api";
import { useEditor } from "./editor";
import { asText, bounds, Control, TextField } from "./fields";
import { LayoutForm } from "./layout";
import { KINDS } from "./node";
import { PipelineForm } from "./pipeline";
import { hue, isData, nodeAt, origins, shown } from "./ports";

const MANY = 8; // inputs, above which a filter is offered

export function Form() {
  const { selection, root, run } = useEditor();
  const [path] = selection;
  const node = selection.length === 1 && path !== undefined ? nodeAt(root, path) : undefined;
  return (
    <aside className="form" aria-label="Settings">
      {selection.length > 1 ? (
        <p className="soft">{selection.length} nodes are selected.</p>
      ) : node ? (
        <NodeForm key={node.path} node={node} />
      ) : (
        <PipelineForm key={run?.run.id ?? ""} />
      )}
    </aside>
  );
}

function NodeForm({ node }: { node: Node }) {
  const { document, editable, session, run } = useEditor();
  const [query, setQuery] = useState("");
  const [isAll, setAll] = useState(false);
  const findings = document.findings.filter((each) => each.node === node.path);
  const live = run?.states.get(node.path);
  const matching = node.inputs.filter((port) => port.name.includes(query.toLowerCase()));
  const main = matching.filter(
    (port) => isAll || query || isMain(port) || findings.some((each) => each.port === port.name),
  );
  return (
    <>
      <h2>{node.name}</h2>
      <p className="soft">
        {KINDS[node.kind][1]} · {node.component} {node.version && `v${node.version}`}
        {node.note && ` · ${node.note}`}
      </p>
      {live && (
        <p>
          {live.status} {live.progress} {live.count > 1 && `· ${live.count} times`}
        </p>
      )}
      {node.description && <p>{node.description}</p>}
      {node.lock && (
        <p className="locknote">
          <b>Locked.</b> {node.lock.text}{" "}
          <button type="button" onClick={() => goTo(node.lock?.line ?? node.first)}>
            Line {node.lock.line || node.first}
          </button>
        </p>
      )}
      <Findings findings={findings} />
      {node.inputs.length > 0 && (
        <fieldset>
          <legend>Inputs</legend>
          {node.inputs.length > MANY && (
            <div className="filter">
              <input
                type="search"
                aria-label="Filter inputs"
                placeholder={`Filter ${node.inputs.length} inputs`}
                value={query}
                onChange={(event) => setQuery(event.target.value)}
              />
              <button type="button" aria-pressed={isAll} onClick={() => setAll(!isAll)}>
                All
              </button>
            </div>
          )}
          {main.map((port) => (
            <Field key={port.name} node={node} port={port} />
          ))}
          {main.length < matching.length && (
            <button type="button" className="plain more" onClick={() => setAll(true)}>
              {matching.length - main.length} more with their default
            </button>
          )}
        </fieldset>
      )}
      {node.layout && <LayoutForm node={node} layout={node.layout} />}
      <fieldset>
        <legend>Place</legend>
        {node.kind !== "pipeline" && (
          <TextField
            label="Compute"
            value={node.compute}
            placeholder={document.compute || "the pipeline's default"}
            disabled={!editable || node.lock !== null}
            onChange={(compute) =>
              void session.edit([{ op: "set_compute", node: node.path, compute }], `Compute ${compute}.`)
            }
          />
        )}
        {node.environment && (
          <p className="soft">
            Environment <code>{node.environment}</code>
          </p>
        )}
        {node.outputs.length > 0 && (
          <p className="soft">Outputs: {node.outputs.map((port) => `${port.name} (${port.type})`).join(", ")}</p>
        )}
      </fieldset>
    </>
  );
}

// Select a line in the code.
export function goTo(line: number): void {
  dispatchEvent(new CustomEvent("designer-line", { detail: line }));
}

const isMain = (port: InputPort) =>
  port.value !== null || (!port.optional && port.default === null) || isData(port.type);

function Field({ node, port }: { node: Node; port: InputPort }) {
  const { set, ask, editable, document, graph } = useEditor();
  const id = useId();
  const isLocked = node.lock !== null || port.locked !== "";
  const disabled = !editable || isLocked;
  const findings = document.findings.filter((each) => each.node === node.path && each.port === port.name);
  const { value } = port;
  const isMissing = value === null && !port.optional && port.default === null;
  const connect = () =>
    graph &&
    ask({
      kind: "connect",
      title: `Connect ${node.name}.${port.name}`,
      choices: origins(graph, node, port),
      promote: { node, input: port.name },
    });
  return (
    <div className={`field ${findings.length ? "bad" : ""}`}>
      <label htmlFor={id}>
        {port.name}
        {isMissing && <span className="required"> required</span>}
      </label>
      <span className={`type ${hue(port.type)}`}>{port.type}</span>
      <div className="control">
        {value && value.kind !== "literal" ? (
          <output id={id} className={`chip ${value.kind}`}>
            {value.kind === "input" ? "‹ " : ""}
            {shown(value)}
          </output>
        ) : (
          <Control
            id={id}
            port={port}
            value={value ? value.value : null}
            disabled={disabled}
            describedBy={`${id}d`}
            onChange={(plain) => set(node, port.name, plain === null ? null : { kind: "literal", value: plain })}
          />
        )}
        <button
          type="button"
          disabled={disabled}
          aria-label={`Connect ${port.name}`}
          title="Connect or promote"
          onClick={connect}
        >
          ⇠
        </button>
        <button
          type="button"
          disabled={disabled || value === null}
          aria-label={value && value.kind !== "literal" ? `Disconnect ${port.name}` : `Reset ${port.name}`}
          title={port.default === null ? "Remove the value" : `Reset to ${asText(port.default)}`}
          onClick={() => set(node, port.name, null)}
        >
          ×
        </button>
      </div>
      <small id={`${id}d`}>{[port.description, bounds(port)].filter(Boolean).join(" · ")}</small>
      {port.locked && (
        <button type="button" className="plain locknote" onClick={() => goTo(port.line)}>
          {port.locked}
        </button>
      )}
    </div>
  );
}

// Findings with their fix: a button where it is an edit.
export function Findings({ findings }: { findings: Finding[] }) {
  const { session, select, editable } = useEditor();
  if (!findings.length) return null;
  return (
    <ul className="findings" aria-label="Findings">
      {findings.map((each) => (
        <li key={`${each.where} ${each.rule} ${each.found}`} className={each.level.replace(" ", "-")}>
          <button
            type="button"
            className="plain"
            onClick={() => {
              if (each.node) select([each.node], true);
              if (each.line) goTo(each.line);
            }}
          >
            <b>{each.level}</b> {each.found}
          </button>
          <small>
            {each.where}
            {each.expected && `: expected ${each.expected}`}
          </small>
          {each.edits.length > 0 ? (
            <button
              type="button"
              disabled={!editable}
              onClick={() => void session.edit(each.edits, `Fixed: ${each.fix}`)}
            >
              Fix: {each.fix}
            </button>
          ) : (
            each.fix && <small>{each.fix}</small>
          )}
        </li>
      ))}
    </ul>
  );
}
