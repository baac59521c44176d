// Types of ports, and which may be connected. The rules are those of `allranks check` (checks/plan/bindings.py).
import type { Edit, Graph, InputPort, Node, Port, Value } from "../api";

const ACCEPTED: Record<string, string[]> = {
  integer: ["integer", "number"], // azure-ai-ml sends a number to an integer
  number: ["number", "integer"],
  boolean: ["boolean"],
  string: ["string", "integer", "number", "boolean"],
};

export const isData = (type: string) => !(type in ACCEPTED);

// Return the CSS class of a port's colour.
export function hue(type: string): string {
  if (type.endsWith("_model")) return "port-model";
  if (type === "uri_file") return "port-file";
  if (type === "mltable") return "port-table";
  return isData(type) ? "port-folder" : "port-value";
}

const article = (type: string) => `${/^[aeio]/.test(type) ? "an" : "a"} ${type}`;

// Return why a value of one type cannot be bound to a port of another; "" if it can.
export function misfit(type: string, port: string): string {
  const accepted = ACCEPTED[port];
  if (accepted ? accepted.includes(type) : isData(type)) return "";
  return `${article(type)} does not fit ${article(port)}`;
}

// Return the name of a node, and those of the nodes that it waits for, directly or not.
function upstream(graph: Graph, name: string): Set<string> {
  const nodes = new Map(graph.nodes.map((node) => [node.name, node]));
  const found = new Set([name]);
  // The loop comes to what is added meanwhile.
  for (const each of found) {
    const { inputs = [], after = [] } = nodes.get(each) ?? {};
    for (const { value } of inputs) if (value?.kind === "output") found.add(value.node);
    for (const other of after) found.add(other);
  }
  return found;
}

// Return why an output of a node, or without one an input of the graph, cannot be bound to an input of a node of the
// same graph; "" if it can.
export function unconnectable(graph: Graph, from: Node | null, port: Port, to: Node, input: InputPort): string {
  const reason = to.lock?.text || input.locked || misfit(port.type, input.type);
  if (reason || !from) return reason;
  if (from === to) return "a step cannot wait for itself";
  return upstream(graph, from.name).has(to.name) ? `${from.name} waits for ${to.name} already` : "";
}

// Return why a port, by its node and the name of its handle, cannot be connected to an input; "" if it can.
export function connectionMisfit(root: Graph | null, source: string, handle: string, target: string, port: string) {
  const [side, name] = handle.split(":");
  const [from, to] = [nodeAt(root, source), nodeAt(root, target)];
  const graph = graphAt(root, parentOf(target));
  const input = to?.inputs.find((each) => each.name === port);
  const isInner = side === "inner"; // an input of an open pipeline, on its inner side
  const found = (isInner ? from?.graph?.inputs : from?.outputs)?.find((each) => each.name === name);
  if (!from || !to || !graph || !input || !found) return "it is gone";
  if ((isInner ? source : parentOf(source)) !== parentOf(target)) return "it is in another pipeline";
  return unconnectable(graph, isInner ? null : from, found, to, input);
}

const source = (from: Node | null, { name }: Port): Value =>
  from ? { kind: "output", node: from.name, port: name } : { kind: "input", name };

const NONE: Graph = { inputs: [], outputs: [], nodes: [] };

// What a port can be connected to.
export interface Choice {
  label: string;
  note: string;
  name?: string; // proposed, of what is made by choosing it
  edits: (name: string) => Edit[];
}

// Return what an output can be bound to: inputs, those of its very type, required and unset, first, and a new output of
// the pipeline. isInner: it is an input of the open pipeline `node`, on its inner side
export function targets(root: Graph | null, node: Node, port: Port, isInner = false): Choice[] {
  const path = isInner ? node.path : parentOf(node.path);
  const from = isInner ? null : node;
  const graph = graphAt(root, path) ?? NONE;
  const value = source(from, port);
  const found = graph.nodes.flatMap((node) =>
    node.inputs
      .filter((input) => !unconnectable(graph, from, port, node, input) && shown(input.value) !== shown(value))
      .map((input) => ({ node, input })),
  );
  const choices = found
    .toSorted((a, b) => rank(a.input, port.type) - rank(b.input, port.type))
    .map(
      ({ node, input }): Choice => ({
        label: `${node.name}.${input.name}`,
        note: input.value ? `${input.type}, now ${shown(input.value)}` : input.type,
        edits: () => [{ op: "set_input", node: node.path, input: input.name, value }],
      }),
    );
  if (!from) return choices;
  const name = freeName(graph.outputs, port.name);
  const edits = (name: string): Edit[] => [{ op: "add_output", graph: path, name, node: from.name, port: port.name }];
  return [...choices, { label: "New pipeline output", note: port.type, name, edits }];
}

// Return what an input can be bound to: outputs of other nodes, inputs of the graph, and a new input. set: the edit of
// a setting, which no output can give
export function origins(root: Graph | null, node: Node, input: InputPort, set?: (value: Value) => Edit): Choice[] {
  const graph = graphAt(root, parentOf(node.path)) ?? NONE;
  const bind = set ?? ((value): Edit => ({ op: "set_input", node: node.path, input: input.name, value }));
  const outputs = graph.nodes.flatMap((from) => from.outputs.map((port) => ({ from, port })));
  const inputs = graph.inputs.map((port) => ({ from: null, port }));
  const found = [...(set ? [] : outputs), ...inputs].filter(
    ({ from, port }) => !unconnectable(graph, from, port, node, input),
  );
  const misses = ({ port }: { port: Port }) => Number(port.type !== input.type);
  const choices = found
    .toSorted((a, b) => misses(a) - misses(b))
    .map(({ from, port }) => ({
      label: shown(source(from, port)),
      note: from ? port.type : `${port.type}, input of the pipeline`,
      edits: () => [bind(source(from, port))],
    }));
  const name = freeName([...graph.nodes, ...graph.inputs], input.name);
  const initial = input.value?.kind === "literal" ? input.value.value : input.default;
  const { type, minimum, maximum } = input;
  const declared = { type, default: initial, minimum, maximum, enum: input.enum };
  const edits = (name: string): Edit[] => [
    { op: "add_input", graph: parentOf(node.path), name, ...declared },
    bind({ kind: "input", name }),
  ];
  return [...choices, { label: "New pipeline input", note: type, name, edits }];
}

// Return a name that none of the others has.
export function freeName(others: { name: string }[], wanted: string): string {
  const taken = new Set(others.map((each) => each.name));
  let name = wanted;
  for (let number = 2; taken.has(name); number += 1) name = `${wanted}_${number}`;
  return name;
}

// Whether a port needs a value and has none.
export const isMissing = (port: Port & { value?: Value | null }) =>
  !port.value && !port.optional && port.default === null;

const rank = (input: InputPort, type: string) =>
  (input.type === type ? 0 : 4) + (isData(input.type) ? 0 : 8) + (input.value ? 2 : 0) + (input.optional ? 1 : 0);

// Return a value as text.
export function shown(value: Value | null): string {
  if (!value) return "";
  if (value.kind === "literal") return String(value.value ?? "none");
  if (value.kind === "output") return `${value.node}.${value.port}`;
  return value.kind === "input" ? value.name : value.text;
}

// Return the graph at a path, "" for the outermost; undefined if there is none.
export function graphAt(graph: Graph | null, path: string): Graph | undefined {
  let here: Graph | null | undefined = graph;
  for (const name of path ? path.split(".") : []) here = here?.nodes.find((node) => node.name === name)?.graph;
  return here ?? undefined;
}

export const parentOf = (path: string) => path.slice(0, Math.max(path.lastIndexOf("."), 0));

export function nodeAt(graph: Graph | null, path: string): Node | undefined {
  return graphAt(graph, parentOf(path))?.nodes.find((node) => node.path === path);
}

// Return all nodes, those of nested pipelines after theirs.
export const allNodes = (graph: Graph | null | undefined): Node[] =>
  graph?.nodes.flatMap((node) => [node, ...allNodes(node.graph)]) ?? [];
