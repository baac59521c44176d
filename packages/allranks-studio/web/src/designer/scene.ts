// Boxes and wires of a graph: what is drawn, and where. Nested pipelines that are open are drawn in their box.
import type { Document, Edit, Graph, InputPort, Node, Port, Value } from "../api";
import { isData, shown } from "./ports";

export const WIDTH = 240;
export const HEADER = 46;
export const ROW = 20;
const FOOT = 24;
const MARGIN = 28;
const GAP = 14; // between a wire and a box that it passes
export const INPUTS = 110; // width of the inputs of an open pipeline

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
  outputs: Port[];
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

export function scene(document: Document, graph: Graph, open: ReadonlySet<string>): Scene {
  const found = draw(document, graph, "", open);
  const boxes = new Map(found.boxes.map((box) => [box.node.path, box]));
  for (const box of found.boxes) {
    box.left = box.x + (boxes.get(box.parent)?.left ?? 0);
    box.top = box.y + (boxes.get(box.parent)?.top ?? 0);
  }
  return found;
}

function draw(document: Document, graph: Graph, parent: string, open: ReadonlySet<string>): Scene {
  const used = usedOutputs(graph);
  const boxes = graph.nodes.map((node, index): Box => {
    const [x, y] = document.positions[node.path] ?? [index * (WIDTH + 80), 0];
    const isUsed = (port: Port) => isData(port.type) || used.has(`${node.name}.${port.name}`) || isControl(node);
    const inputs = node.inputs.filter((port) => isData(port.type) || port.value?.kind === "output");
    const outputs = node.outputs.filter(isUsed);
    const height = HEADER + ROW * Math.max(inputs.length, outputs.length) + (footer(node) ? FOOT : 8);
    const place = { x, y, left: 0, top: 0, shift: [0, 0] as [number, number], width: WIDTH, height };
    return { node, graph, parent, ...place, open: false, inner: 0, inputs, outputs };
  });
  const inside = new Map<Box, Scene>();
  for (const box of boxes)
    if (box.node.graph && open.has(box.node.path)) inside.set(box, openBox(box, boxes, document, open));
  return {
    boxes: boxes.flatMap((box) => [box, ...(inside.get(box)?.boxes ?? [])]),
    wires: [...boxes.flatMap((box) => inside.get(box)?.wires ?? []), ...wires(graph)],
  };
}

// Draw the graph of a box in it, and make room for that among the other boxes.
function openBox(box: Box, around: Box[], document: Document, open: ReadonlySet<string>): Scene {
  const { node } = box;
  const graph = node.graph ?? { inputs: [], outputs: [], nodes: [] };
  const part = draw(document, graph, node.path, open);
  const children = part.boxes.filter((each) => each.parent === node.path);
  const { left, top, right, bottom } = bounds(children);
  const inner = box.height + MARGIN;
  for (const child of children) move(child, MARGIN + INPUTS - left, inner - top);
  const [width, height] = [
    right - left + 2 * (MARGIN + INPUTS),
    inner + Math.max(bottom - top, ROW * innerPorts(node).length) + MARGIN,
  ];
  for (const each of around) {
    const isRight = each.x >= box.x + box.width;
    const isBelow = each.y >= box.y + box.height;
    move(each, isRight ? width - box.width : 0, isBelow ? height - box.height : 0);
  }
  Object.assign(box, { open: true, inner, width, height });
  return { boxes: part.boxes, wires: [...part.wires, ...innerWires(node, graph)] };
}

export const innerPorts = (node: Node) => node.graph?.inputs.filter((port) => isData(port.type)) ?? [];

function move(box: Box, x: number, y: number): void {
  box.x += x;
  box.y += y;
  box.shift = [box.shift[0] + x, box.shift[1] + y];
}

export function bounds(boxes: { x: number; y: number; width: number; height: number }[]) {
  const [left, top] = [Math.min(...boxes.map((box) => box.x)), Math.min(...boxes.map((box) => box.y))];
  const right = Math.max(...boxes.map((box) => box.x + box.width));
  return { left, top, right, bottom: Math.max(...boxes.map((box) => box.y + box.height)) };
}

const isControl = (node: Node) => !["command", "parallel", "sweep", "pipeline"].includes(node.kind);

// Return the line below a node's ports: its layout or what it does; "" for none.
export function footer(node: Node): string {
  if (node.note) return node.note;
  const { layout } = node;
  if (!layout || (layout.distribution === "none" && !layout.size)) return "";
  const counts = `${layout.distribution} ${shown(layout.instances)} × ${shown(layout.processes)}`;
  return [layout.distribution !== "none" && counts, layout.size.replace(/^Standard_/, "")].filter(Boolean).join(" · ");
}

function usedOutputs(graph: Graph): Set<string> {
  const values = [...graph.nodes.flatMap((node) => node.inputs), ...graph.outputs].map((port) => port.value);
  return new Set(values.flatMap((value) => (value?.kind === "output" ? [`${value.node}.${value.port}`] : [])));
}

function wires(graph: Graph): Wire[] {
  const nodes = new Map(graph.nodes.map((node) => [node.name, node]));
  return graph.nodes.flatMap(({ path: target, inputs, after }) => [
    ...inputs.flatMap(({ name, type, value }) => {
      const source = value?.kind === "output" ? nodes.get(value.node) : undefined;
      if (value?.kind !== "output" || !source) return [];
      const from = source.outputs.find((each) => each.name === value.port);
      return [wire(source.path, value.port, target, name, from?.type ?? type)];
    }),
    ...after.flatMap((name) => (nodes.has(name) ? [wire(nodes.get(name)?.path ?? "", "", target, "", "")] : [])),
  ]);
}

function innerWires({ path }: Node, graph: Graph): Wire[] {
  const bound = graph.nodes.flatMap((node) => node.inputs.map((port) => ({ node, port })));
  return bound.flatMap(({ node, port: { name, type, value } }) =>
    value?.kind === "input" && isData(type) ? [wire(path, value.name, node.path, name, type, true)] : [],
  );
}

function wire(
  source: string,
  sourcePort: string,
  target: string,
  targetPort: string,
  type: string,
  inner = false,
): Wire {
  return { id: `${source}.${sourcePort}>${target}.${targetPort}`, source, sourcePort, target, targetPort, type, inner };
}

// Return the straight part by which a wire passes boxes; undefined if no box is in its way.
export function detour({ source, target, inner }: Wire, boxes: ReadonlyMap<string, Box>) {
  const [from, to] = [boxes.get(source), boxes.get(target)];
  if (!from || !to || inner) return undefined;
  const [x, width] = [from.left + from.width, to.left - from.left - from.width];
  const [y, height] = [from.top + from.height / 2, to.top + to.height / 2 - from.top - from.height / 2];
  const crossed = [...boxes.values()].filter((box) => {
    const at = y + (height * (box.left + box.width / 2 - x)) / width;
    const isBetween = box.parent === from.parent && box.left > x && box.left + box.width < to.left;
    return isBetween && at > box.top - GAP && at < box.top + box.height + GAP;
  });
  if (!crossed.length) return undefined;
  const { left, top, right, bottom } = bounds(crossed.map((box) => ({ ...box, x: box.left, y: box.top })));
  return { left: left - GAP, right: right + GAP, y: y + height / 2 < (top + bottom) / 2 ? top - GAP : bottom + GAP };
}

// Return the graph as it will be after edits of inputs and layouts, and deletions. Other edits wait for the server.
export function foreseen(graph: Graph, edits: Edit[]): Graph {
  if (!edits.length) return graph;
  const deleted = new Set(edits.map((edit) => (edit.op === "delete_node" ? edit.node : "")));
  const values = new Map<string, Value | null>();
  for (const edit of edits) {
    if (edit.op === "set_input") values.set(`${edit.node}.${edit.input}`, edit.value);
    if (edit.op === "reset_input") values.set(`${edit.node}.${edit.input}`, null);
  }
  const nodes = graph.nodes.filter((node) => !deleted.has(node.path));
  return { ...graph, nodes: nodes.map((node) => foreseenNode(node, edits, values)) };
}

function foreseenNode(node: Node, edits: Edit[], values: ReadonlyMap<string, Value | null>): Node {
  const value = (port: InputPort) => values.get(`${node.path}.${port.name}`);
  const inputs = node.inputs.map((port) =>
    value(port) === undefined ? port : { ...port, value: value(port) ?? null },
  );
  const edit = edits.findLast((each) => each.op === "set_layout" && each.node === node.path);
  const counts = edit?.op === "set_layout" && { instances: edit.instances, processes: edit.processes };
  const layout = node.layout && { ...node.layout, ...counts };
  return { ...node, inputs, layout, graph: node.graph && foreseen(node.graph, edits) };
}
