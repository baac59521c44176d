// Types of ports, and which may be connected. The rules are those of `allranks check` (checks/plan/bindings.py).
import type { Edit, Graph, InputPort, Node, Port, Value } from "../api";

const ACCEPTED: Record<string, string[]> = {
  integer: ["integer", "number"], // azure-ai-ml sends a number to an integer
  number: ["number", "integer"],
  boolean: ["boolean"],
  string: ["string", "integer", "number", "boolean"],
};

export const TYPES = ["uri_folder", "uri_file", "mltable", "mlflow_model", "custom_model", ...Object.keys(ACCEPTED)];

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

// Return the names of the nodes that a node waits for, directly or not.
export function upstream(graph: Graph, name: string): Set<string> {
  const nodes = new Map(graph.nodes.map((node) => [node.name, node]));
  const found = new Set<string>();
  const open = [name];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const source of sources(nodes.get(next))) {
      if (!found.has(source)) {
        found.add(source);
        open.push(source);
      }
    }
  }
  return found;
}

function sources(node: Node | undefined): string[] {
  const bound = node?.inputs.flatMap((port) => (port.value?.kind === "output" ? [port.value.node] : []));
  return [...(bound ?? []), ...(node?.after ?? [])];
}

// Return why an output cannot be bound to an input of a node of the same graph; "" if it can.
export function unconnectable(graph: Graph, source: Node, output: Port, target: Node, input: InputPort): string {
  if (source === target) return "a step cannot wait for itself";
  if (target.lock) return target.lock.text;
  if (input.locked) return input.locked;
  const reason = misfit(output.type, input.type);
  if (reason) return reason;
  return upstream(graph, source.name).has(target.name) ? `${source.name} waits for ${target.name} already` : "";
}

// What a port can be connected to.
export interface Choice {
  label: string;
  note: string;
  edits: Edit[];
}

// Return the inputs that an output can be bound to: those of its very type, required and unset, first.
export function targets(graph: Graph, source: Node, output: Port): Choice[] {
  const value: Value = { kind: "output", node: source.name, port: output.name };
  const found = graph.nodes.flatMap((node) =>
    node.inputs
      .filter((input) => !unconnectable(graph, source, output, node, input) && shown(input.value) !== shown(value))
      .map((input) => ({ node, input })),
  );
  return sorted(found, (each) => rank(each.input, output.type)).map(({ node, input }) => ({
    label: `${node.name}.${input.name}`,
    note: input.value ? `${input.type}, now ${shown(input.value)}` : input.type,
    edits: [{ op: "set_input", node: node.path, input: input.name, value }],
  }));
}

// Return what an input can be bound to: outputs of other nodes, inputs of the graph, and a new input.
export function origins(graph: Graph, node: Node, input: InputPort): Choice[] {
  const set = (value: Value): Edit => ({ op: "set_input", node: node.path, input: input.name, value });
  const outputs = graph.nodes.flatMap((source) =>
    source.outputs
      .filter((output) => !unconnectable(graph, source, output, node, input))
      .map(({ name, type }) => ({
        type,
        note: type,
        value: { kind: "output", node: source.name, port: name } as Value,
      })),
  );
  const inputs = graph.inputs
    .filter((each) => !misfit(each.type, input.type))
    .map(({ name, type }) => ({
      type,
      note: `${type}, input of the pipeline`,
      value: { kind: "input", name } as Value,
    }));
  const found = sorted([...outputs, ...inputs], ({ type }) => (type === input.type ? 0 : 1));
  const choices = found.map(({ note, value }) => ({ label: shown(value), note, edits: [set(value)] }));
  const name = freeName(graph, input.name);
  const initial = input.value?.kind === "literal" ? input.value.value : input.default;
  const add: Edit = { op: "add_input", graph: parentOf(node.path), name, type: input.type, default: initial };
  const promoted = { label: "New pipeline input", note: name, edits: [add, set({ kind: "input", name })] };
  return [...choices, promoted];
}

// Return a name that no node, and no input, of a graph has.
export function freeName(graph: Graph | null | undefined, wanted: string): string {
  const taken = new Set([...(graph?.nodes ?? []), ...(graph?.inputs ?? [])].map((each) => each.name));
  let name = wanted;
  for (let number = 2; taken.has(name); number += 1) name = `${wanted}_${number}`;
  return name;
}

const sorted = <T>(items: T[], key: (item: T) => number) => [...items].sort((a, b) => key(a) - key(b));

const rank = (input: InputPort, type: string) =>
  (input.type === type ? 0 : 4) + (isData(input.type) ? 0 : 8) + (input.value ? 2 : 0) + (input.optional ? 1 : 0);

// Return a value as text.
export function shown(value: Value | null): string {
  if (!value) return "";
  switch (value.kind) {
    case "literal":
      return value.value === null ? "none" : String(value.value);
    case "input":
      return value.name;
    case "output":
      return `${value.node}.${value.port}`;
    default:
      return value.text;
  }
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

// Yield all nodes, those of nested pipelines after theirs.
export function* allNodes(graph: Graph | null | undefined): Generator<Node> {
  for (const node of graph?.nodes ?? []) {
    yield node;
    yield* allNodes(node.graph);
  }
}
