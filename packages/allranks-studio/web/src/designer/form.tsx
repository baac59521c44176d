// The right side: the inputs and settings of the node that is selected, or of the pipeline.
import { useId, useState } from "react";
import type { Finding, InputPort, Node } from "../api";
import { Button, Search } from "../controls";
import { about, asText, Control, Field, type Plain } from "./controls";
import { goTo, useEditor } from "./editor";
import { LayoutForm } from "./layout";
import { KINDS } from "./node";
import { PipelineForm } from "./pipeline";
import { hue, isData, nodeAt, shown } from "./ports";

const MANY = 8; // inputs, above which a filter is offered

export function Form() {
  const { selection, root } = useEditor();
  const node = selection.length === 1 ? nodeAt(root, selection[0] ?? "") : undefined;
  return (
    <aside className="form" aria-label="Settings">
      {node ? <NodeForm key={node.path} node={node} /> : <PipelineForm />}
    </aside>
  );
}

function NodeForm({ node }: { node: Node }) {
  const { document, run } = useEditor();
  const live = run?.states.get(node.path);
  const component = node.component && `${node.component} ${node.version && `v${node.version}`}`;
  return (
    <>
      <h2>{node.name}</h2>
      <p className="soft">{[KINDS[node.kind][1], component, node.note].filter(Boolean).join(" · ")}</p>
      {live && (
        <p>{[live.status, live.progress, live.count > 1 && `${live.count} times`].filter(Boolean).join(" · ")}</p>
      )}
      {node.description && <p className="clamp">{node.description}</p>}
      {node.lock && (
        <p className="locknote">
          <b>Locked.</b> {node.lock.text}{" "}
          <Button text={`Line ${node.lock.line || node.first}`} onClick={() => goTo(node.lock?.line || node.first)} />
        </p>
      )}
      <Findings findings={document.findings.filter((each) => each.node === node.path)} />
      {node.inputs.length > 0 && <Inputs node={node} />}
      {node.layout && <LayoutForm node={node} layout={node.layout} />}
      <fieldset>
        <legend>Place</legend>
        {node.kind !== "pipeline" && <Compute node={node} label="Compute" />}
        {node.environment && (
          <p className="soft">
            Environment <code>{node.environment}</code>
          </p>
        )}
        <p className="soft">
          Outputs: {node.outputs.map((port) => `${port.name} (${port.type})`).join(", ") || "none"}
        </p>
      </fieldset>
    </>
  );
}

// The compute of a node; of the pipeline without one.
export function Compute({ node, label }: { node: Node | null; label: string }) {
  const { document, session, editable } = useEditor();
  const value = (node ?? document).compute || null;
  const port = { default: (node && document.compute) || null };
  const change = (to: Plain) =>
    session.edit(`${label}: ${asText(to)}.`, { op: "set_compute", node: node?.path ?? "", compute: asText(to) });
  return <Field label={label} value={value} port={port} disabled={!editable || !!node?.lock} onChange={change} />;
}

function Inputs({ node }: { node: Node }) {
  const { document } = useEditor();
  const [query, setQuery] = useState("");
  const [isAll, setAll] = useState(false);
  const isFound = (name: string) => document.findings.some((each) => each.node === node.path && each.port === name);
  const matching = node.inputs.filter((port) => port.name.includes(query.toLowerCase()));
  const shownPorts = matching.filter((port) => isAll || query || isMain(port) || isFound(port.name));
  const more = matching.length - shownPorts.length;
  return (
    <fieldset>
      <legend>Inputs</legend>
      {node.inputs.length > MANY && (
        <Search placeholder={`Filter ${node.inputs.length} inputs`} value={query} onChange={setQuery} />
      )}
      {shownPorts.map((port) => (
        <InputField key={port.name} node={node} port={port} />
      ))}
      {more > 0 && <Button className="plain" text={`${more} more with their default`} onClick={() => setAll(true)} />}
    </fieldset>
  );
}

const isMain = (port: InputPort) => port.value !== null || isMissing(port) || isData(port.type);

export const isMissing = (port: InputPort) => port.value === null && !port.optional && port.default === null;

function InputField({ node, port }: { node: Node; port: InputPort }) {
  const { set, connect, editable, document } = useEditor();
  const id = useId();
  const disabled = !editable || node.lock !== null || port.locked !== "";
  const findings = document.findings.filter((each) => each.node === node.path && each.port === port.name);
  const { value } = port;
  const isBound = value && value.kind !== "literal";
  return (
    <div className={`field ${findings.length ? "bad" : ""}`}>
      <label htmlFor={id}>
        {port.name}
        {isMissing(port) && <span className="required"> required</span>}
      </label>
      <span className={`type ${hue(port.type)}`}>{port.type}</span>
      <div className="control">
        {isBound ? (
          <output id={id} className={`chip ${value.kind}`}>
            {value.kind === "input" && "‹ "}
            {shown(value)}
          </output>
        ) : (
          <Control
            id={id}
            port={port}
            value={value?.kind === "literal" ? value.value : null}
            disabled={disabled}
            describedBy={`${id}-about`}
            onChange={(plain) => set(node, port.name, plain === null ? null : { kind: "literal", value: plain })}
          />
        )}
        <Button
          text="⇠"
          name={`Connect ${port.name}`}
          disabled={disabled}
          onClick={() => connect(node, port.name, "input")}
        />
        <Button
          text="×"
          name={`${isBound ? "Disconnect" : "Reset"} ${port.name}`}
          disabled={disabled || value === null}
          onClick={() => set(node, port.name, null)}
        />
      </div>
      <small id={`${id}-about`} className="clamp">
        {about(port)}
      </small>
      {port.locked && <Button className="plain locknote" text={port.locked} onClick={() => goTo(port.line)} />}
    </div>
  );
}

// Findings with their fix: a button where it is an edit.
export function Findings({ findings }: { findings: Finding[] }) {
  const { session, select, editable } = useEditor();
  const show = (finding: Finding) => {
    if (finding.node) select([finding.node], true);
    if (finding.line) goTo(finding.line);
  };
  if (!findings.length) return null;
  return (
    <ul className="findings" aria-label="Findings">
      {findings.map((each) => (
        <li key={`${each.where} ${each.rule} ${each.found}`} className={each.level.replace(" ", "-")}>
          <button type="button" className="plain" onClick={() => show(each)}>
            <b>{each.level}</b> {each.found}
          </button>
          <small>{each.expected ? `${each.where}: expected ${each.expected}` : each.where}</small>
          {each.fix && !each.edits.length && <small>{each.fix}</small>}
          {each.edits.length > 0 && (
            <Button
              text={`Fix: ${each.fix}`}
              disabled={!editable}
              onClick={() => session.edit(`Fixed: ${each.fix}`, ...each.edits)}
            />
          )}
        </li>
      ))}
    </ul>
  );
}
