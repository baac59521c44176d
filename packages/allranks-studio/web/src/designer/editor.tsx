// What the parts of the designer share: the document, the view of it, and the selection.
import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from "react";
import type { Document, Edit, Graph, Node, PaletteItem, Value } from "../api";
import { useServer } from "../server";
import { useStore } from "../store";
import { type LiveRun, useLiveRun } from "./live";
import { allNodes, type Choice, graphAt, nodeAt, parentOf } from "./ports";
import { foreseen } from "./scene";
import { added, Session, type SessionState } from "./session";

export type Task =
  | { kind: "connect"; title: string; choices: Choice[]; promote: { node: Node; input: string } | null }
  | { kind: "name"; title: string; value: string; submit: string; done: (name: string) => void }
  | { kind: "run" }
  | { kind: "export" };

export interface Editor extends SessionState {
  session: Session;
  document: Document;
  root: Graph | null; // with the changes that the server has not answered yet
  graph: Graph | null; // the one that is shown
  view: string; // its path
  enter: (path: string) => void;
  open: ReadonlySet<string>; // nested pipelines that are open in place
  toggle: (path: string) => void;
  selection: string[]; // paths of nodes
  select: (paths: string[], reveal?: boolean) => void;
  reveal: { path: string } | null; // the node that the canvas shall show
  palette: PaletteItem[];
  run: LiveRun | null;
  follow: (run: string) => void; // show a run on the canvas; "" to edit
  editable: boolean;
  task: Task | null;
  ask: (task: Task | null) => void;
  add: (item: PaletteItem, graph?: string, position?: [number, number]) => void;
  set: (node: Node, input: string, value: Value | null) => void;
  remove: (nodes: string[], wires: { node: string; input: string }[]) => void;
}

const Context = createContext<Editor | null>(null);

export function useEditor(): Editor {
  const editor = useContext(Context);
  if (!editor) throw new Error("useEditor is only for parts of the designer");
  return editor;
}

// Open a document and provide it. Before it has arrived, show what `waiting` returns.
export function Provider(properties: {
  folder: string;
  path: string;
  waiting: (error: unknown, again: () => void) => ReactNode;
  children: ReactNode;
}) {
  const { folder, path } = properties;
  const session = useMemo(() => new Session(folder, path), [folder, path]);
  useEffect(() => session.open(), [session]);
  const state = useStore(session.state);
  if (!state.document) return properties.waiting(state.error, () => void session.load());
  return (
    <Opened session={session} state={state} document={state.document}>
      {properties.children}
    </Opened>
  );
}

function Opened(properties: { session: Session; state: SessionState; document: Document; children: ReactNode }) {
  const { session, state, document } = properties;
  const [view, setView] = useState("");
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const [selection, setSelection] = useState<string[]>([]);
  const [reveal, setReveal] = useState<Editor["reveal"]>(null);
  const [task, ask] = useState<Task | null>(null);
  const [runId, follow] = useState("");
  const run = useLiveRun(session.folder, runId);
  const palette = useServer<PaletteItem[]>("/api/palette", { folder: session.folder }).data;
  const root = useMemo(() => document.graph && foreseen(document.graph, state.pending), [document, state.pending]);
  const shownView = graphAt(root, view) ? view : "";
  const editor = useMemo((): Editor => {
    const editable = !document.read_only && !runId;
    const select = (paths: string[], show = false) => {
      setSelection((before) =>
        before.length === paths.length && before.every((each) => paths.includes(each)) ? before : paths,
      );
      const [first] = paths;
      if (!show || first === undefined) return;
      const around = parentOf(first);
      setView((before) => (around === before || open.has(around) ? before : around));
      setReveal({ path: first });
    };
    const add: Editor["add"] = (item, graph = shownView, position) => {
      if (!editable) return;
      const edit: Edit = { op: "add_node", graph, component: item.component, name: "", inputs: {} };
      void session.edit([edit], `Added ${item.display_name}.`).then((after) => {
        const [path] = after ? added(document, after) : [];
        if (path === undefined) return;
        if (position) session.move({ [path]: position });
        select([path], !position);
      });
    };
    return {
      ...state,
      session,
      document,
      root,
      graph: graphAt(root, shownView) ?? null,
      view: shownView,
      enter: (path) => {
        setView(path);
        setSelection([]);
      },
      open,
      toggle: (path) =>
        setOpen(
          (before) => new Set(before.has(path) ? [...before].filter((each) => each !== path) : [...before, path]),
        ),
      selection: selection.filter((path) => nodeAt(root, path)),
      select,
      reveal,
      palette: palette ?? [],
      run,
      follow,
      editable,
      task,
      ask,
      add,
      set: (node, input, value) => {
        if (!editable) return;
        const edit: Edit = value
          ? { op: "set_input", node: node.path, input, value }
          : { op: "reset_input", node: node.path, input };
        void session.edit([edit], value ? `Set ${node.name}.${input}.` : `Reset ${node.name}.${input}.`);
      },
      remove: (nodes, wires) => {
        const free = nodes.filter((path) => !nodeAt(root, path)?.lock);
        const locked = nodes.find((path) => !free.includes(path));
        if (locked) session.say(nodeAt(root, locked)?.lock?.text ?? "");
        const edits: Edit[] = [
          ...wires.map(({ node, input }): Edit => ({ op: "reset_input", node, input })),
          ...free.map((node): Edit => ({ op: "delete_node", node })),
        ];
        if (!editable || !edits.length) return;
        setSelection([]);
        void session.edit(edits, free.length ? `Deleted ${free.join(", ")}.` : "Disconnected.");
      },
    };
  }, [state, session, document, root, shownView, open, selection, reveal, palette, run, runId, task]);
  return <Context value={editor}>{properties.children}</Context>;
}

// Return a name that no node, or no input, of a graph has.
export function freeName(graph: Graph | null, wanted: string): string {
  const taken = new Set([...(graph?.nodes ?? []), ...(graph?.inputs ?? [])].map((each) => each.name));
  let name = wanted;
  for (let number = 2; taken.has(name); number += 1) name = `${wanted}_${number}`;
  return name;
}

// Return the node whose lines contain a line: the innermost one.
export function nodeOfLine(graph: Graph | null, line: number): Node | undefined {
  return [...allNodes(graph)].filter((node) => node.first && node.first <= line && line <= node.last).at(-1);
}
