// What the parts of the designer share: the document, the view of it, and the selection.
import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from "react";
import type { Document, Edit, Node, PaletteItem, Value } from "../api";
import { Button } from "../controls";
import { Loading, Problem } from "../parts";
import { view } from "../router";
import { useServer } from "../server";
import { useStore } from "../store";
import { useLiveRun } from "./live";
import { allNodes, type Choice, freeName, graphAt, nodeAt, parentOf } from "./ports";
import { foreseen, type Wire } from "./scene";
import { Session, type SessionState } from "./session";

// A dialog.
export type Task =
  | { kind: "connect"; title: string; choices: Choice[] }
  | { kind: "name"; title: string; value: string; submit: string; done: (name: string) => Promise<unknown> }
  | { kind: "run" }
  | { kind: "export" };

const Context = createContext<(SessionState & ReturnType<typeof useOpened>) | null>(null);

export function useEditor() {
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

function useOpened(session: Session, { pending }: SessionState, document: Document) {
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set()); // nested pipelines that are open in place
  const [wantedSelection, setSelection] = useState<string[]>([]); // paths of nodes
  const [reveal, setReveal] = useState<{ path: string } | null>(null); // the node that the canvas shall show
  const [target, setTarget] = useState<{ line: number } | null>(null); // the line that the code shall show
  const [task, ask] = useState<Task | null>(null);
  const [runId, follow] = useState(""); // the run that is shown; "" to edit
  const run = useLiveRun(document.folder, runId);
  const palette = usePalette(document.folder);
  // With the changes that the server has not answered yet.
  const root = useMemo(() => document.graph && pending.flat().reduce(foreseen, document.graph), [document, pending]);
  const selection = useMemo(() => wantedSelection.filter((path) => nodeAt(root, path)), [wantedSelection, root]);
  const editable = !document.read_only && !runId;
  const [only = ""] = selection;
  const node = selection.length === 1 ? nodeAt(root, only) : undefined; // the only one that is selected
  const canChange = editable && selection.length > 0 && !selection.some((path) => nodeAt(root, path)?.lock);

  const toggle = (path: string) => setOpen((before) => before.symmetricDifference(new Set([path])));
  // isShown: bring the first one into sight
  const select = (paths: string[], isShown = false) => {
    const isSame = (before: string[]) => before.length === paths.length && before.every((each) => paths.includes(each));
    setSelection((before) => (isSame(before) ? before : paths));
    const [path] = paths;
    if (!isShown || path === undefined) return;
    const around: string[] = [];
    for (let each = parentOf(path); each; each = parentOf(each)) around.push(each);
    setOpen((before) => (around.every((each) => before.has(each)) ? before : before.union(new Set(around))));
    setReveal({ path });
  };
  const goTo = (line: number) => setTarget({ line });
  // Add a component: without a place, beside the selected node, or in it if it is an open pipeline.
  const add = async (item: PaletteItem, graph = open.has(only) ? only : parentOf(only), place?: [number, number]) => {
    if (!editable) return;
    const after = await session.edit({ op: "add_node", graph, component: item.component, name: "", inputs: {} });
    const path = allNodes(after?.graph).find((each) => !nodeAt(document.graph, each.path))?.path;
    if (path === undefined) return;
    if (place) session.move({ [path]: place });
    select([path], !place);
  };
  const set = (node: string, input: string, value: Value | null) =>
    session.edit(value ? { op: "set_input", node, input, value } : { op: "reset_input", node, input });
  // Ask which of the choices a port shall be bound to.
  const connect = (node: Node, port: { name: string }, choices: Choice[]) =>
    editable && ask({ kind: "connect", title: `Connect ${node.name}.${port.name}`, choices });
  // Delete the selected nodes, and disconnect wires.
  const remove = (wires: Wire[] = []) => {
    const edits = [
      ...wires.map((wire): Edit => ({ op: "reset_input", node: wire.target, input: wire.targetPort })),
      ...selection.map((path): Edit => ({ op: "delete_node", node: path })),
    ];
    if (editable && edits.length) session.edit(...edits);
  };
  const rename = () => {
    if (!node || !canChange) return;
    const done = async (name: string) => {
      const after = await session.edit({ op: "rename_node", node: only, name });
      if (after) select([[parentOf(only), name].filter(Boolean).join(".")]);
    };
    ask({ kind: "name", title: `Rename ${node.name}`, value: node.name, submit: "Rename", done });
  };
  const wrap = () => {
    const name = freeName(graphAt(root, parentOf(only))?.nodes ?? [], node ? `${node.name}_pipeline` : "part");
    session.edit({ op: "wrap_nodes", nodes: selection, name });
  };
  const duplicate = () => {
    const edits = selection.map((path): Edit => ({ op: "duplicate_node", node: path, name: "" }));
    if (canChange) session.edit(...edits);
  };
  const shown = { root, open, selection, node, reveal, target, run, palette, editable, canChange };
  const edits = { add, set, connect, remove, rename, wrap, duplicate };
  return { session, document, task, ask, toggle, select, goTo, follow, ...shown, ...edits };
}

// The components; read again when the user comes back from an editor, where they may have been changed.
function usePalette(folder: string) {
  const palette = useServer<PaletteItem[]>("/api/palette", { folder });
  const { reload } = palette;
  useEffect(() => {
    addEventListener("focus", reload);
    return () => removeEventListener("focus", reload);
  }, [reload]);
  return palette;
}
