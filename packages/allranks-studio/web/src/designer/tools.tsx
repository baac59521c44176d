// What can be done with the selection and the view: buttons, and the same as shortcuts.
import { useReactFlow } from "@xyflow/react";
import { Button } from "./controls";
import { useEditor } from "./editor";
import { freeName, nodeAt, parentOf } from "./ports";

export function useActions() {
  const editor = useEditor();
  const { selection, root, session, editable, graph } = editor;
  const [only = ""] = selection;
  const node = selection.length === 1 ? nodeAt(root, only) : undefined;
  const canChange = editable && selection.length > 0 && !selection.some((path) => nodeAt(root, path)?.lock);
  const selectNew = (name: string) => (after: unknown) =>
    after && editor.select([[parentOf(only), name].filter(Boolean).join(".")]);
  return {
    node,
    canChange,
    rename: () => {
      if (!canChange || !node) return;
      const done = (name: string) =>
        session
          .edit(`Renamed ${node.name} to ${name}.`, { op: "rename_node", node: node.path, name })
          .then(selectNew(name));
      editor.ask({ kind: "name", title: `Rename ${node.name}`, value: node.name, submit: "Rename", done });
    },
    duplicate: () => {
      if (!canChange) return;
      const edits = selection.map((path) => ({ op: "duplicate_node", node: path, name: "" }) as const);
      session.edit(`Duplicated ${selection.join(", ")}.`, ...edits);
    },
    wrap: () => {
      if (!canChange) return;
      const done = (name: string) =>
        session
          .edit(`Wrapped ${selection.join(", ")} in ${name}.`, { op: "wrap_nodes", nodes: selection, name })
          .then(selectNew(name));
      const value = freeName(graph, node ? `${node.name}_pipeline` : "part");
      editor.ask({ kind: "name", title: "Wrap in a nested pipeline", value, submit: "Wrap", done });
    },
    remove: () => editor.remove(selection, []),
  };
}

export function CanvasTools({ fit }: { fit: () => void }) {
  const { view, enter, document, selection } = useEditor();
  const flow = useReactFlow();
  const { node, canChange, rename, duplicate, wrap, remove } = useActions();
  const trail = view.split(".").filter(Boolean);
  const paths = trail.map((_, index) => trail.slice(0, index + 1).join("."));
  return (
    <>
      <div className="tools left">
        {view && (
          <nav aria-label="Nested pipelines">
            <Button text={document.name || "pipeline"} onClick={() => enter("")} />
            {paths.map((path) => (
              <Button
                key={path}
                text={`› ${path.split(".").at(-1)}`}
                aria-current={path === view}
                onClick={() => enter(path)}
              />
            ))}
          </nav>
        )}
        {selection.length > 0 && (
          <div role="toolbar" aria-label="Selection">
            {node?.graph && <Button text="Enter" onClick={() => enter(node.path)} />}
            <Button text="Rename" disabled={!canChange || !node} onClick={rename} />
            <Button text="Duplicate" disabled={!canChange} onClick={duplicate} />
            <Button text="Wrap" disabled={!canChange} onClick={wrap} />
            <Button text="Delete" disabled={!canChange} onClick={remove} />
          </div>
        )}
      </div>
      <div className="tools right" role="toolbar" aria-label="View">
        <Button text="−" name="Zoom out" onClick={() => flow.zoomOut()} />
        <Button text="+" name="Zoom in" onClick={() => flow.zoomIn()} />
        <Button text="Fit" onClick={fit} />
      </div>
    </>
  );
}
