// Boxes and wires of a graph: what is drawn, and where. Nested pipelines that are open are drawn in their box.
import type { Document, Edit, Graph, InputPort, Node, Value } from "../api";
import { isData, shown } from "./ports";

export const WIDTH = 240;
export const HEADER = 46;
export const ROW = 20;
const FOOT = 24;
const MARGIN = 28;
export const INPUTS = 110; // width of the inputs of an open pipeline

type Positions = Document["positions"];

export interface Box {
  node: Node;
  graph: Graph; // that contains the node
  parent: string; // path of the open box around it; "" for none
  x: number; // relative to the parent
  y: number;
  left: number; // relative to the canvas
  top: number;
  shift: [number, number]; // by how much boxes that are open moved it
  width: number;
  height: number;
  open: boolean;
  inner: number; // of an open one, where its inputs are on its inner side
  inputs: InputPort[]; // those drawn
}

export interface Wire {
  id: string;
  source: string; // path of a node
  sourcePort: string; // "" for a wait without data
  target: string;
  targetPort: string;
  type: string;
  inner: boolean; // from an input of an open box to a node in it
}

export interface Scene {
  boxes: Box[]; // parents before what they contain
  wires: Wire[];
}

export function scene(positions: Positions, graph: Graph, open: ReadonlySet<string>): Scene {
  const found = draw(positions, graph, "", open);
  const boxes = new Map(found.boxes.map((box) => [box.node.path, box]));
  for (const box of found.boxes) {
    box.left = box.x + (boxes.get(box.parent)?.left ?? 0);
    box.top = box.y + (boxes.get(box.parent)?.top ?? 0);
  }
  return found;
}

function draw(positions: Positions, graph: Graph, parent: string, open: ReadonlySet<string>): Scene {
  const boxes = graph.nodes.map((node, index): Box => {
    const [x, y] = positions[node.path] ?? [index * (WIDTH + 80), 0];
    const inputs = node.inputs.filter((port) => isData(port.type) || port.value?.kind === "output");
    const height = HEADER + ROW * Math.max(inputs.length, node.outputs.length) + (footer(node) ? FOOT : 8);
    const place = { x, y, left: 0, top: 0, shift: [0, 0] as [number, number], width: WIDTH, height };
    return { node, graph, parent, ...place, open: false, inner: 0, inputs };
  });
  const inside = new Map<Box, Scene>();
  for (const box of boxes)
    if (box.node.graph && open.has(box.node.path)) inside.set(box, openBox(box, boxes, positions, open));
  return {
    boxes: boxes.flatMap((box) => [box, ...(inside.get(box)?.boxes ?? [])]),
    wires: [...boxes.flatMap((box) => inside.get(box)?.wires ?? []), ...wires(graph, parent)],
  };
}

// Draw the graph of a box in it, and make room for that among the other boxes.
function openBox(box: Box, around: Box[], positions: Positions, open: ReadonlySet<string>): Scene {
  const { node } = box;
  const graph = node.graph ?? { inputs: [], outputs: [], nodes: [] };
  const part = draw(positions, graph, node.path, open);
  const children = part.boxes.filter((each) => each.parent === node.path);
  const area = bounds(children);
  const inner = box.height + MARGIN;
  for (const child of children) move(child, MARGIN + INPUTS - area.left, inner - area.top);
  const width = area.width + 2 * (MARGIN + INPUTS);
  const height = inner + Math.max(area.height, ROW * innerPorts(node).length) + MARGIN;
  for (const each of around) {
    const isRight = each.x >= box.x + box.width;
    const isBelow = each.y >= box.y + box.height;
    move(each, isRight ? width - box.width : 0, isBelow ? height - box.height : 0);
  }
  Object.assign(box, { open: true, inner, width, height });
  return part;
}

export const innerPorts = (node: Node) => node.graph?.inputs.filter((port) => isData(port.type)) ?? [];

function move(box: Box, x: number, y: number): void {
  box.x += x;
  box.y += y;
  box.shift = [box.shift[0] + x, box.shift[1] + y];
}

// Return the area of boxes.
export function bounds(boxes: { x: number; y: number; width: number; height: number }[]) {
  const [left, top] = [Math.min(...boxes.map((box) => box.x)), Math.min(...boxes.map((box) => box.y))];
  const right = Math.max(...boxes.map((box) => box.x + box.width));
  return new DOMRect(left, top, right - left, Math.max(...boxes.map((box) => box.y + box.height)) - top);
}

// Return the line below a node's ports: its layout or what it does; "" for none.
export function footer(node: Node): string {
  if (node.note) return node.note;
  const { layout } = node;
  if (!layout || (layout.distribution === "none" && !layout.size)) return "";
  const counts = `${layout.distribution} ${shown(layout.instances)} × ${shown(layout.processes)}`;
  return [layout.distribution !== "none" && counts, layout.size.replace(/^Standard_/, "")].filter(Boolean).join(" · ");
}

// Return the wires of a graph. around: the path of the open box that it is in, which has its inputs; "" for none
function wires(graph: Graph, around: string): Wire[] {
  const nodes = new Map(graph.nodes.map((node) => [node.name, node]));
  const bound = graph.nodes.flatMap(({ path, inputs, after }) => [
    ...inputs.map(({ name, type, value }) => ({ path, name, type, value })),
    ...after.map((node) => ({ path, name: "", type: "", value: { kind: "output", node, port: "" } as Value })),
  ]);
  return bound.flatMap(({ path: target, name: targetPort, type, value }) => {
    if (value?.kind === "input" && around && isData(type))
      return wire({ source: around, sourcePort: value.name, target, targetPort, type, inner: true });
    const node = value?.kind === "output" ? nodes.get(value.node) : undefined;
    if (value?.kind !== "output" || !node) return [];
    const given = node.outputs.find((each) => each.name === value.port)?.type ?? type;
    return wire({ source: node.path, sourcePort: value.port, target, targetPort, type: given, inner: false });
  });
}

const wire = (wire: Omit<Wire, "id">): Wire => ({
  ...wire,
  id: `${wire.source}.${wire.sourcePort}>${wire.target}.${wire.targetPort}`,
});

// Return the graph as it will be after an edit of an input or a layout, or a deletion. Other edits wait for the server.
export function foreseen(graph: Graph, edit: Edit): Graph {
  const nodes = graph.nodes.filter((node) => edit.op !== "delete_node" || edit.node !== node.path);
  return { ...graph, nodes: nodes.map((node) => foreseenNode(node, edit)) };
}

function foreseenNode(node: Node, edit: Edit): Node {
  if (!("node" in edit) || edit.node !== node.path)
    return node.graph ? { ...node, graph: foreseen(node.graph, edit) } : node;
  const { layout, inputs } = node;
  if (edit.op === "set_layout" && layout) {
    return { ...node, layout: { ...layout, instances: edit.instances, processes: edit.processes } };
  }
  if (edit.op !== "set_input" && edit.op !== "reset_input") return node;
  const value = edit.op === "set_input" ? edit.value : null;
  return { ...node, inputs: inputs.map((port) => (port.name === edit.input ? { ...port, value } : port)) };
}
