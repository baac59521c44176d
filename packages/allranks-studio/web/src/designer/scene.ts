// Boxes and wires of a graph: what is drawn, and where. Nested pipelines that are open are drawn in their box.
import type { Document, Edit, Graph, InputPort, Node, Port } from "../api";
import { isData, parentOf } from "./ports";

export const WIDTH = 240;
export const HEADER = 46;
export const ROW = 20;
const FOOT = 24;
const MARGIN = 28;

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
  const found: Scene = { boxes: [], wires: [] };
  draw(found, document, graph, "", open);
  const boxes = new Map(found.boxes.map((box) => [box.node.path, box]));
  for (const box of found.boxes) {
    box.left = box.x + (boxes.get(box.parent)?.left ?? 0);
    box.top = box.y + (boxes.get(box.parent)?.top ?? 0);
  }
  return found;
}

// Add a graph's boxes and wires. Return the extent of the boxes.
function draw(to: Scene, document: Document, graph: Graph, parent: string, open: ReadonlySet<string>) {
  const used = usedOutputs(graph);
  const boxes = graph.nodes.map((node, index): Box => {
    const [x, y] = document.positions[node.path] ?? [index * (WIDTH + 80), 0];
    const inputs = node.inputs.filter((port) => isData(port.type) || port.value?.kind === "output");
    const outputs = node.outputs.filter(
      (port) => isData(port.type) || used.has(`${node.name}.${port.name}`) || isControl(node),
    );
    const height = HEADER + ROW * Math.max(inputs.length, outputs.length) + (footer(node) ? FOOT : 8);
    const place = { x, y, left: 0, top: 0, shift: [0, 0] as [number, number], width: WIDTH, height };
    return { node, graph, parent, ...place, open: false, inputs, outputs };
  });
  const inside = new Map<string, Scene>();
  for (const box of boxes) {
    if (!box.node.graph || !open.has(box.node.path)) continue;
    const part: Scene = { boxes: [], wires: [] };
    const size = draw(part, document, box.node.graph, box.node.path, open);
    box.open = true;
    const offset: [number, number] = [MARGIN + 110 - size.left, box.height + MARGIN - size.top];
    for (const child of part.boxes.filter((each) => each.parent === box.node.path)) {
      child.x += offset[0];
      child.y += offset[1];
      child.shift = [child.shift[0] + offset[0], child.shift[1] + offset[1]];
    }
    inside.set(box.node.path, part);
    const [width, height] = [
      size.right - size.left + 2 * MARGIN + 220,
      box.height + size.bottom - size.top + 2 * MARGIN,
    ];
    makeRoom(boxes, box, Math.max(width, WIDTH), height);
  }
  for (const box of boxes) {
    to.boxes.push(box);
    const part = inside.get(box.node.path);
    to.boxes.push(...(part?.boxes ?? []));
    to.wires.push(...(part?.wires ?? []), ...(part && box.node.graph ? innerWires(box.node, box.node.graph) : []));
  }
  to.wires.push(...wires(graph));
  return bounds(boxes);
}

export function bounds(boxes: { x: number; y: number; width: number; height: number }[]) {
  return {
    left: Math.min(...boxes.map((box) => box.x)),
    top: Math.min(...boxes.map((box) => box.y)),
    right: Math.max(...boxes.map((box) => box.x + box.width)),
    bottom: Math.max(...boxes.map((box) => box.y + box.height)),
  };
}

const isControl = (node: Node) => !["command", "parallel", "sweep", "pipeline"].includes(node.kind);

// Return the line below a node's ports: its layout or what it does; "" for none.
export function footer(node: Node): string {
  if (node.note) return node.note;
  const { layout } = node;
  if (!layout || (layout.distribution === "none" && !layout.size)) return "";
  const counts = [layout.instances, layout.processes].map((value) =>
    value.kind === "literal" ? value.value : shortName(value),
  );
  const size = layout.size.replace(/^Standard_/, "");
  return [layout.distribution === "none" ? "" : `${layout.distribution} ${counts.join(" × ")}`, size]
    .filter(Boolean)
    .join(" · ");
}

const shortName = (value: { kind: string; name?: string }) => (value.kind === "input" ? (value.name ?? "") : "…");

// Move the boxes on the right of, and below, a box that grows.
function makeRoom(boxes: Box[], grown: Box, width: number, height: number) {
  const [right, below] = [width - grown.width, height - grown.height];
  for (const box of boxes) {
    const dx = box.x >= grown.x + grown.width ? right : 0;
    const dy = box.y >= grown.y + grown.height ? below : 0;
    box.x += dx;
    box.y += dy;
    box.shift = [box.shift[0] + dx, box.shift[1] + dy];
  }
  grown.width = width;
  grown.height = height;
}

function usedOutputs(graph: Graph): Set<string> {
  const values = [...graph.nodes.flatMap((node) => node.inputs), ...graph.outputs].map((port) => port.value);
  return new Set(values.flatMap((value) => (value?.kind === "output" ? [`${value.node}.${value.port}`] : [])));
}

function wires(graph: Graph): Wire[] {
  const nodes = new Map(graph.nodes.map((node) => [node.name, node]));
  return graph.nodes.flatMap((target) => {
    const data = target.inputs.flatMap((port): Wire[] => {
      const source = port.value?.kind === "output" ? nodes.get(port.value.node) : undefined;
      if (port.value?.kind !== "output" || !source) return [];
      const output = port.value.port;
      const type = source.outputs.find((each) => each.name === output)?.type ?? port.type;
      return [wire(source.path, output, target.path, port.name, type)];
    });
    const after = target.after.flatMap((name) => {
      const source = nodes.get(name);
      return source ? [wire(source.path, "", target.path, "", "")] : [];
    });
    return [...data, ...after];
  });
}

function innerWires(owner: Node, graph: Graph): Wire[] {
  return graph.nodes.flatMap((node) =>
    node.inputs.flatMap((port) =>
      port.value?.kind === "input" && isData(port.type)
        ? [{ ...wire(owner.path, port.value.name, node.path, port.name, port.type), inner: true }]
        : [],
    ),
  );
}

const wire = (source: string, sourcePort: string, target: string, targetPort: string, type: string): Wire => ({
  id: `${source}.${sourcePort}>${target}.${targetPort}`,
  source,
  sourcePort,
  target,
  targetPort,
  type,
  inner: false,
});

// Return the graph as it will be after edits that connect, set, reset or delete. Other edits wait for the server.
export function foreseen(graph: Graph, edits: Edit[]): Graph {
  return edits.reduce(foreseenOne, graph);
}

function foreseenOne(graph: Graph, edit: Edit): Graph {
  switch (edit.op) {
    case "set_input":
    case "reset_input": {
      const value = edit.op === "set_input" ? edit.value : null;
      const inputs = (node: Node) => node.inputs.map((port) => (port.name === edit.input ? { ...port, value } : port));
      return changed(graph, parentOf(edit.node), (part) => ({
        ...part,
        nodes: part.nodes.map((node) => (node.path === edit.node ? { ...node, inputs: inputs(node) } : node)),
      }));
    }
    case "delete_node":
      return changed(graph, parentOf(edit.node), (part) => ({
        ...part,
        nodes: part.nodes.filter((node) => node.path !== edit.node),
      }));
    default:
      return graph;
  }
}

// Return the graph with the nested one at a path changed.
function changed(graph: Graph, path: string, change: (graph: Graph) => Graph): Graph {
  if (!path) return change(graph);
  const [name, ...rest] = path.split(".");
  const inner = (node: Node) => (node.graph ? { ...node, graph: changed(node.graph, rest.join("."), change) } : node);
  return { ...graph, nodes: graph.nodes.map((node) => (node.name === name ? inner(node) : node)) };
}
