// What the parts of the designer share: the document, the view of it, and the selection.
import { createContext, type ReactNode, useContext, useEffect, useMemo, useRef, useState } from "react";
import type { Document, Edit, Graph, Node, PaletteItem, Value } from "../api";
import { Button } from "../controls";
import { Loading, Problem } from "../parts";
import { view } from "../router";
import { useServer } from "../server";
import { useStore } from "../store";
import { useLiveRun } from "./live";
import { allNodes, type Choice, graphAt, nodeAt, origins, parentOf, targets } from "./ports";
import { foreseen } from "./scene";
import { added, Session, type SessionState } from "./session";

// A dialog.
export type Task =
  | { kind: "connect"; title: string; choices: Choice[] }
  | { kind: "name"; title: string; value: string; submit: string; done: (name: string) => void }
  | { kind: "run" }
  | { kind: "export" };

export type Editor = SessionState & ReturnType<typeof useOpened>;

const Context = createContext<Editor | null>(null);

export function useEditor(): Editor {
  const editor = useContext(Context);
  if (!editor) throw new Error("useEditor is only for parts of the designer");
  return editor;
}

// Open a document and provide it.
export function Provider({ folder, path, children }: { folder: string; path: string; children: ReactNode }) {
  const session = useMemo(() => new Session(folder, path), [folder, path]);
  useEffect(() => session.open(), [session]);
  const state = useStore(session.state);
  if (state.document) return <Opened {...{ session, state, document: state.document, children }} />;
  if (state.error === null) return <Loading />;
  return (
    <div className="page">
      <Problem error={state.error}>
        <Button text="Try again" onClick={() => session.load()} /> <a href={view(["designer"])}>All pipelines</a>
      </Problem>
    </div>
  );
}

function Opened(properties: { session: Session; state: SessionState; document: Document; children: ReactNode }) {
  const { session, state, document, children } = properties;
  return <Context value={{ ...state, ...useOpened(session, state, document) }}>{children}</Context>;
}

function useOpened(session: Session, state: SessionState, document: Document) {
  const [wantedView, setView] = useState(""); // path of the graph that is shown
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set()); // nested pipelines that are open in place
  const [wantedSelection, setSelection] = useState<string[]>([]); // paths of nodes
  const [reveal, setReveal] = useState<{ path: string } | null>(null); // the node that the canvas shall show
  const [task, setTask] = useState<Task | null>(null);
  const [runId, follow] = useState(""); // the run that is shown; "" to edit
  const opener = useRef<HTMLElement>(null); // what had the focus before the dialog
  const run = useLiveRun(session.folder, runId);
  const palette = useServer<PaletteItem[]>("/api/palette", { folder: session.folder });
  // With the changes that the server has not answered yet.
  const root = useMemo(() => document.graph && foreseen(document.graph, state.pending), [document, state.pending]);
  const shownPath = graphAt(root, wantedView) ? wantedView : "";
  const selection = useMemo(() => wantedSelection.filter((path) => nodeAt(root, path)), [wantedSelection, root]);
  const editable = !document.read_only && !runId;

  const enter = (path: string) => {
    setView(path);
    setSelection([]);
  };
  const toggle = (path: string) =>
    setOpen((before) => new Set(before.has(path) ? [...before].filter((each) => each !== path) : [...before, path]));
  const select = (paths: string[], show = false) => {
    const isSame = (before: string[]) => before.length === paths.length && before.every((each) => paths.includes(each));
    setSelection((before) => (isSame(before) ? before : paths));
    const [path] = paths;
    if (!show || path === undefined) return;
    const around = parentOf(path);
    setView((before) => (around === before || open.has(around) ? before : around));
    setReveal({ path });
  };
  const ask = (next: Task | null) => {
    if (next) opener.current = window.document.activeElement as HTMLElement;
    setTask(next);
  };
  const add = async (item: PaletteItem, graph = shownPath, position?: [number, number]) => {
    if (!editable) return;
    const edit: Edit = { op: "add_node", graph, component: item.component, name: "", inputs: {} };
    const after = await session.edit(`Added ${item.display_name}.`, edit);
    const [path] = after ? added(document, after) : [];
    if (path === undefined) return;
    if (position) session.move({ [path]: position });
    select([path], !position);
  };
  const set = (node: Node, input: string, value: Value | null) => {
    if (!editable) return;
    if (value) session.edit(`Set ${node.name}.${input}.`, { op: "set_input", node: node.path, input, value });
    else session.edit(`Reset ${node.name}.${input}.`, { op: "reset_input", node: node.path, input });
  };
  // Ask to what a port shall be connected.
  const connect = (node: Node, port: string, side: "input" | "output") => {
    const graph = graphAt(root, parentOf(node.path));
    const input = node.inputs.find((each) => each.name === port);
    const output = node.outputs.find((each) => each.name === port);
    if (!editable || !graph) return;
    const title = `Connect ${node.name}.${port}`;
    if (side === "input" && input) ask({ kind: "connect", title, choices: origins(graph, node, input) });
    if (side === "output" && output) ask({ kind: "connect", title, choices: targets(graph, node, output) });
  };
  const remove = (nodes: string[], wires: { node: string; input: string }[]) => {
    const locked = nodes.map((path) => nodeAt(root, path)).find((node) => node?.lock);
    if (locked) return session.say(locked.lock?.text ?? "");
    const edits: Edit[] = [
      ...wires.map(({ node, input }): Edit => ({ op: "reset_input", node, input })),
      ...nodes.map((node): Edit => ({ op: "delete_node", node })),
    ];
    if (!editable || !edits.length) return;
    setSelection([]);
    session.edit(nodes.length ? `Deleted ${nodes.join(", ")}.` : "Disconnected.", ...edits);
  };
  const graph = graphAt(root, shownPath) ?? null;
  const shown = {
    session,
    document,
    root,
    graph,
    view: shownPath,
    open,
    selection,
    reveal,
    run,
    editable,
    task,
    opener,
  };
  return { ...shown, palette, enter, toggle, select, follow, ask, add, set, connect, remove };
}

// Return the node whose lines contain a line: the innermost one.
export function nodeOfLine(graph: Graph | null, line: number): Node | undefined {
  return [...allNodes(graph)].filter((node) => node.first && node.first <= line && line <= node.last).at(-1);
}

// Show a line of the code, and put the cursor there.
export function goTo(line: number): void {
  dispatchEvent(new CustomEvent("designer-line", { detail: line }));
}
