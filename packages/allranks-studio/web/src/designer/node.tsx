// A node on the canvas: its name, its ports and what it is.
import { type Node as FlowNode, Handle, type NodeProps, Position, useConnection } from "@xyflow/react";
import { type KeyboardEvent, memo } from "react";
import type { InputPort, Node, Port } from "../api";
import { Button } from "../controls";
import { State } from "../parts";
import { useEditor } from "./editor";
import { connectionMisfit, hue, isMissing, origins, shown, targets } from "./ports";
import { type Box, footer, innerPorts } from "./scene";

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
  const { node } = box;
  const ports = (list: (InputPort | Port)[], side: PortProperties["side"]) =>
    list.map((port) => <PortHandle key={port.name} box={box} port={port} side={side} isReachable={selected} />);
  const status = useEditor().run?.states.get(node.path)?.status ?? "";
  return (
    <div className={`box ${node.kind} ${status} ${node.lock ? "locked" : ""} ${box.open ? "open" : ""}`}>
      <Head box={box} />
      <div className="ports">
        <div>{ports(box.inputs, "in")}</div>
        <div>{ports(node.outputs, "out")}</div>
      </div>
      {footer(node) && <footer title={footer(node)}>{footer(node)}</footer>}
      <Handle id="in:" type="target" position={Position.Left} isConnectable={false} className="whole" />
      <Handle id="out:" type="source" position={Position.Right} isConnectable={false} className="whole" />
      {box.open && (
        <div className="inner" style={{ top: box.inner }}>
          {ports(innerPorts(node), "inner")}
        </div>
      )}
    </div>
  );
});

function Head({ box }: { box: Box }) {
  const { node } = box;
  const { document, run, select, toggle, goTo } = useEditor();
  const [symbol, kind] = KINDS[node.kind];
  const live = run?.states.get(node.path);
  const findings = document.findings.filter((each) => each.node === node.path);
  const worst = findings.some((each) => each.level === "error") ? "error" : "";
  const show = () => {
    select([node.path]);
    goTo(node.lock?.line || node.first);
  };
  return (
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
      {node.lock && <Button className="plain nodrag" text="locked" name={`Locked: ${node.lock.text}`} onClick={show} />}
      {node.graph && (
        <Button
          className="plain nodrag"
          text={box.open ? "−" : "+"}
          name={`Open ${node.name} in place`}
          aria-expanded={box.open}
          onClick={() => toggle(node.path)}
        />
      )}
      <small>{live?.progress || node.display_name || node.component || kind}</small>
    </header>
  );
}

interface PortProperties {
  box: Box;
  port: InputPort | Port;
  side: "in" | "out" | "inner"; // inner: an input of an open pipeline, on its inner side
  isReachable: boolean; // by Tab
}

function PortHandle({ box: { node, graph }, port, side, isReachable }: PortProperties) {
  const { document, root, connect } = useEditor();
  const { name, type } = port;
  const isInput = side === "in";
  const value = "value" in port ? port.value : null;
  const dragged = useConnection((here) => (here.inProgress ? `${here.fromNode.id} ${here.fromHandle.id}` : ""));
  const [source = "", handle = ""] = dragged.split(" ");
  const reason = dragged && isInput ? connectionMisfit(root, source, handle, node.path, name) : "";
  const findings = document.findings.filter((each) => isInput && each.node === node.path && each.port === name);
  const isReturned = graph.outputs.some((each) => side === "out" && shown(each.value) === `${node.name}.${name}`);
  const isValue = value?.kind === "literal";
  const text = value?.kind === "input" ? ` ‹ ${value.name}` : isValue ? ` = ${shown(value)}` : isReturned ? " ›" : "";
  const isBad = findings.length > 0 || (isInput && isMissing(port));
  const about = [...findings.map((each) => each.found), type + (port.optional ? ", optional" : ""), port.description];
  const classes = ["port", hue(type), reason && "dim", (value || !isInput) && "set", isBad && "bad"];
  const press = (event: KeyboardEvent) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    event.stopPropagation();
    const choices = isInput ? origins(root, node, port as InputPort) : targets(root, node, port, side === "inner");
    connect(node, port, choices);
  };
  return (
    <Handle
      id={`${side}:${name}`}
      type={isInput ? "target" : "source"}
      position={isInput ? Position.Left : Position.Right}
      className={classes.filter(Boolean).join(" ")}
      isConnectableStart={!isInput}
      isConnectableEnd={isInput}
      role="button"
      tabIndex={isReachable ? 0 : -1}
      title={about.join("\n")}
      aria-label={`${name}${text}, ${isInput ? "input" : "output"} of ${node.name}, ${type}`}
      onKeyDown={press}
    >
      <span>
        {name}
        <i>{text}</i>
      </span>
    </Handle>
  );
}
