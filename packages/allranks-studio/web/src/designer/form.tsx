// The right side: the inputs and settings of the node that is selected, or of the pipeline.
import { useState } from "react";
import type { Finding, Node, Port } from "../api";
import { Button, Search } from "../controls";
import { Field, literal } from "../fields";
import { useEditor } from "./editor";
import { LayoutForm } from "./layout";
import { KINDS } from "./node";
import { List, PipelineForm, Ports } from "./pipeline";
import { isData, isMissing, origins, shown, targets } from "./ports";

const MANY = 8; // inputs, above which a filter is offered

export function Form() {
  const { node } = useEditor();
  return (
    <aside className="form" aria-label="Settings">
      {node ? <NodeForm key={node.path} node={node} /> : <PipelineForm />}
    </aside>
  );
}

function NodeForm({ node }: { node: Node }) {
  const { document, run, goTo } = useEditor();
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
      <Outputs node={node} />
      {node.layout && <LayoutForm node={node} layout={node.layout} />}
      {node.kind !== "pipeline" && (
        <fieldset>
          <legend>Place</legend>
          <Compute node={node} label="Compute" />
          {node.environment && (
            <p className="soft">
              Environment <code>{node.environment}</code>
            </p>
          )}
        </fieldset>
      )}
      {node.graph && <Ports graph={node.graph} path={node.path} />}
    </>
  );
}

// The compute of a node; of the pipeline without one.
export function Compute({ node, label }: { node: Node | null; label: string }) {
  const { document, session, editable } = useEditor();
  const value = literal((node ?? document).compute || null);
  return (
    <Field
      label={label}
      value={value}
      port={{ default: (node && document.compute) || null }}
      disabled={!editable || !!node?.lock}
      onChange={(to) => session.edit({ op: "set_compute", node: node?.path ?? "", compute: shown(to) })}
    />
  );
}

function Inputs({ node }: { node: Node }) {
  const { document, root, set, connect, editable, goTo } = useEditor();
  const [query, setQuery] = useState("");
  const [isAll, setAll] = useState(false);
  const bad = new Set(document.findings.filter((each) => each.node === node.path).map((each) => each.port));
  const matching = node.inputs.filter((port) => port.name.includes(query.toLowerCase()));
  const drawn = matching.filter(
    (port) => isAll || query || port.value || isMissing(port) || isData(port.type) || bad.has(port.name),
  );
  const more = matching.length - drawn.length;
  return (
    <fieldset>
      <legend>Inputs</legend>
      {node.inputs.length > MANY && (
        <Search placeholder={`Filter ${node.inputs.length} inputs`} value={query} onChange={setQuery} />
      )}
      {drawn.map((port) => (
        <Field
          key={port.name}
          label={port.name}
          port={port}
          value={port.value}
          disabled={!editable || node.lock !== null || port.locked !== ""}
          className={bad.has(port.name) ? "bad" : ""}
          onChange={(value) => set(node.path, port.name, value)}
          onConnect={() => connect(node, port, origins(root, node, port))}
        >
          {port.locked && <Button className="plain locknote" text={port.locked} onClick={() => goTo(port.line)} />}
        </Field>
      ))}
      {more > 0 && <Button className="plain" text={`${more} more with their default`} onClick={() => setAll(true)} />}
    </fieldset>
  );
}

function Outputs({ node }: { node: Node }) {
  const { root, connect } = useEditor();
  const about = ({ type, description }: Port) => [type, description].filter(Boolean).join(" · ");
  const ports = node.outputs.map((port) => ({ ...port, text: about(port) }));
  const act = (name: string) => {
    const port = node.outputs.find((each) => each.name === name);
    if (port) connect(node, port, targets(root, node, port));
  };
  return <List title="Outputs" ports={ports} symbol="⇢" verb="Connect" act={act} />;
}

// Findings with their fix: a button where it is an edit.
export function Findings({ findings }: { findings: Finding[] }) {
  const { session, select, editable, goTo } = useEditor();
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
            <Button text={`Fix: ${each.fix}`} disabled={!editable} onClick={() => session.edit(...each.edits)} />
          )}
        </li>
      ))}
    </ul>
  );
}
