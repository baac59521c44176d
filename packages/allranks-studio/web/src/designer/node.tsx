// A node on the canvas: its name, its ports and what it is.
import {
  type Node as FlowNode,
  Handle,
  type NodeProps,
  Position,
  useConnection,
  useUpdateNodeInternals,
} from "@xyflow/react";
import { type KeyboardEvent, memo, useEffect } from "react";
import type { InputPort, Node, Port } from "../api";
import { State } from "../parts";
import { useEditor } from "./editor";
import { hue, isData, misfit, nodeAt, origins, parentOf, shown, targets, unconnectable } from "./ports";
import { type Box, footer } from "./scene";

export type BoxNode = FlowNode<{ box: Box }, "box">;

export const KINDS: Record<Node["kind"], [string, string]> = {
  command: ["▸", "step"],
  parallel: ["≡", "parallel step"],
  sweep: ["∗", "sweep"],
  pipeline: ["▣", "nested pipeline"],
  condition: ["◇", "condition"],
  do_while: ["↻", "do-while loop"],
  parallel_for: ["⇉", "parallel-for loop"],
  stand_in: ["?", "component that could not be read"],
};

export const BoxView = memo(({ data: { box }, selected }: NodeProps<BoxNode>) => {
  const editor = useEditor();
  const { node } = box;
  const [symbol, kind] = KINDS[node.kind];
  const live = editor.run?.states.get(node.path);
  const findings = editor.document.findings.filter((each) => each.node === node.path);
  const worst = findings.some((each) => each.level === "error") ? "error" : "warning";
  const update = useUpdateNodeInternals();
  const signature = [...box.inputs, "|", ...box.outputs, box.width, box.height, box.open]
    .map((each) => (typeof each === "object" ? each.name : each))
    .join();
  // biome-ignore lint/correctness/useExhaustiveDependencies: the library measures the ports again when they change
  useEffect(() => update(node.path), [signature, node.path]);
  const classes = ["box", node.kind, live?.status ?? "", node.lock ? "locked" : "", box.open ? "open" : ""];
  return (
    <div className={classes.join(" ")}>
      <header>
        <span className="kind" title={kind}>
          {symbol}
        </span>
        <b title={node.path}>{node.name}</b>
        {live && <State status={live.status} short />}
        {findings.length > 0 && (
          <span className={`count ${worst}`} title={findings.map((each) => each.found).join("\n")}>
            {findings.length}
          </span>
        )}
        {node.lock && (
          <button
            type="button"
            className="plain lock nodrag"
            title={node.lock.text}
            aria-label={`Locked: ${node.lock.text}`}
            onClick={() => editor.select([node.path], true)}
          >
            <svg viewBox="0 0 12 12" width="11" aria-hidden="true">
              <path fill="currentColor" d="M3 5V4a3 3 0 0 1 6 0v1h1v6H2V5h1zm1.6 0h2.8V4a1.4 1.4 0 0 0-2.8 0z" />
            </svg>
          </button>
        )}
        {node.graph && (
          <button
            type="button"
            className="plain nodrag"
            aria-expanded={box.open}
            aria-label={`Open ${node.name} in place`}
            onClick={() => editor.toggle(node.path)}
          >
            {box.open ? "−" : "+"}
          </button>
        )}
        <small>{live?.progress || node.display_name || node.component || kind}</small>
      </header>
      <div className="ports">
        <div>
          {box.inputs.map((port) => (
            <Input key={port.name} box={box} port={port} reachable={selected} />
          ))}
        </div>
        <div>
          {box.outputs.map((port) => (
            <Output key={port.name} box={box} port={port} reachable={selected} />
          ))}
        </div>
      </div>
      {footer(node) && <footer title={footer(node)}>{footer(node)}</footer>}
      <Handle id="in:" type="target" position={Position.Left} isConnectable={false} className="whole" />
      <Handle id="out:" type="source" position={Position.Right} isConnectable={false} className="whole" />
      {box.open && <Inner box={box} />}
    </div>
  );
});

const onEnter = (act: () => void) => (event: KeyboardEvent) => {
  if (event.key !== "Enter" && event.key !== " ") return;
  event.preventDefault();
  event.stopPropagation();
  act();
};

interface PortProperties<P> {
  box: Box;
  port: P;
  reachable: boolean; // by Tab
}

function Input({ box, port, reachable }: PortProperties<InputPort>) {
  const editor = useEditor();
  const reason = useMisfit(box, port);
  const findings = editor.document.findings.filter((each) => each.node === box.node.path && each.port === port.name);
  const isMissing = !port.value && !port.optional && port.default === null;
  const value =
    port.value?.kind === "input"
      ? ` ‹ ${port.value.name}`
      : port.value?.kind === "literal"
        ? ` = ${shown(port.value)}`
        : "";
  const classes = [
    "port",
    hue(port.type),
    reason ? "dim" : "",
    port.value ? "set" : "",
    findings.length || isMissing ? "bad" : "",
  ];
  return (
    <Handle
      id={`in:${port.name}`}
      type="target"
      position={Position.Left}
      className={classes.join(" ")}
      role="button"
      tabIndex={reachable ? 0 : -1}
      isConnectableStart={false}
      title={
        findings.map((each) => each.found).join("\n") ||
        `${port.type}${port.optional ? ", optional" : ""}\n${port.description}`
      }
      aria-label={`Input ${port.name} of ${box.node.name}, ${port.type}${port.value ? `, ${shown(port.value)}` : ""}`}
      onKeyDown={onEnter(() =>
        editor.ask({
          kind: "connect",
          title: `Connect ${box.node.name}.${port.name}`,
          choices: origins(box.graph, box.node, port),
          promote: { node: box.node, input: port.name },
        }),
      )}
    >
      <span>
        {port.name}
        <i>{value}</i>
      </span>
    </Handle>
  );
}

function Output({ box, port, reachable }: PortProperties<Port>) {
  const editor = useEditor();
  const returned = box.graph.outputs.filter(
    ({ value }) => value.kind === "output" && value.node === box.node.name && value.port === port.name,
  );
  return (
    <Handle
      id={`out:${port.name}`}
      type="source"
      position={Position.Right}
      className={`port ${hue(port.type)} set`}
      role="button"
      tabIndex={reachable ? 0 : -1}
      isConnectableEnd={false}
      title={`${port.type}\n${port.description}`}
      aria-label={`Output ${port.name} of ${box.node.name}, ${port.type}: connect`}
      onKeyDown={onEnter(() =>
        editor.ask({
          kind: "connect",
          title: `Connect ${box.node.name}.${port.name} to`,
          choices: targets(box.graph, box.node, port),
          promote: null,
        }),
      )}
    >
      <span>
        <i>{returned.length ? `${returned.map(({ name }) => name).join(", ")} › ` : ""}</i>
        {port.name}
      </span>
    </Handle>
  );
}

// The inputs of an open pipeline, on its inner side.
function Inner({ box }: { box: Box }) {
  return (
    <div className="inner">
      {box.node.graph?.inputs
        .filter((port) => isData(port.type))
        .map((port) => (
          <Handle
            key={port.name}
            id={`inner:${port.name}`}
            type="source"
            position={Position.Right}
            className={`port ${hue(port.type)} set`}
            isConnectableEnd={false}
            title={port.type}
          >
            <span>{port.name}</span>
          </Handle>
        ))}
    </div>
  );
}

// Return why the output that is dragged does not fit an input; "" if it does, or if none is dragged.
function useMisfit(box: Box, input: InputPort): string {
  const dragged = useConnection((connection) =>
    connection.inProgress ? `${connection.fromNode.id} ${connection.fromHandle.id}` : "",
  );
  const { root } = useEditor();
  if (!dragged) return "";
  const [path = "", handle = ""] = dragged.split(" ");
  return connectionMisfit(nodeAt(root, path), handle, box, input);
}

// Return why a port, by its node and the name of its handle, cannot be connected to an input; "" if it can.
export function connectionMisfit(source: Node | undefined, handle: string, box: Box, input: InputPort): string {
  const name = handle.slice(handle.indexOf(":") + 1);
  if (!source) return "it is gone";
  if (handle.startsWith("inner:")) {
    const port = source.graph?.inputs.find((each) => each.name === name);
    if (box.parent !== source.path || !port) return "it is in another pipeline";
    return box.node.lock?.text || input.locked || misfit(port.type, input.type);
  }
  const output = source.outputs.find((each) => each.name === name);
  if (parentOf(source.path) !== parentOf(box.node.path) || !output) return "it is in another pipeline";
  return unconnectable(box.graph, source, output, box.node, input);
}
