// What can be done with the selection and the view: buttons, and the same as shortcuts.
import { useReactFlow } from "@xyflow/react";
import { freeName, useEditor } from "./editor";
import { nodeAt, parentOf } from "./ports";

export function useActions() {
  const editor = useEditor();
  const { selection, root, session, editable, graph } = editor;
  const [only] = selection;
  const node = selection.length === 1 && only !== undefined ? nodeAt(root, only) : undefined;
  const isLocked = selection.some((path) => nodeAt(root, path)?.lock);
  const canChange = editable && selection.length > 0 && !isLocked;
  const selectAfter = (path: string) => (after: unknown) => after && editor.select([path]);
  const inside = (name: string) => [parentOf(only ?? ""), name].filter(Boolean).join(".");
  return {
    node,
    canChange,
    rename: () => {
      if (!canChange || !node) return;
      const done = (name: string) =>
        void session
          .edit([{ op: "rename_node", node: node.path, name }], `Renamed ${node.name} to ${name}.`)
          .then(selectAfter(inside(name)));
      editor.ask({ kind: "name", title: `Rename ${node.name}`, value: node.name, submit: "Rename", done });
    },
    duplicate: () => {
      if (!canChange) return;
      const edits = selection.map((path) => ({ op: "duplicate_node", node: path, name: "" }) as const);
      void session.edit(edits, `Duplicated ${selection.join(", ")}.`);
    },
    wrap: () => {
      if (!canChange) return;
      const done = (name: string) =>
        void session
          .edit([{ op: "wrap_nodes", nodes: selection, name }], `Wrapped ${selection.join(", ")} in ${name}.`)
          .then(selectAfter(inside(name)));
      const value = freeName(graph, node ? `${node.name}_pipeline` : "part");
      editor.ask({ kind: "name", title: "Wrap in a nested pipeline", value, submit: "Wrap", done });
    },
    remove: () => editor.remove(selection, []),
  };
}

export function CanvasTools({ fit }: { fit: () => void }) {
  const editor = useEditor();
  const flow = useReactFlow();
  const { node, canChange, rename, duplicate, wrap, remove } = useActions();
  const trail = editor.view ? editor.view.split(".") : [];
  return (
    <>
      <div className="tools left">
        <nav aria-label="Nested pipelines">
          {trail.length > 0 && (
            <button type="button" onClick={() => editor.enter("")}>
              {editor.document.name || "pipeline"}
            </button>
          )}
          {trail.map((name, index) => (
            <button
              key={trail.slice(0, index + 1).join(".")}
              type="button"
              aria-current={index === trail.length - 1 ? "true" : undefined}
              onClick={() => editor.enter(trail.slice(0, index + 1).join("."))}
            >
              › {name}
            </button>
          ))}
        </nav>
        {editor.selection.length > 0 && (
          <div role="toolbar" aria-label="Selection">
            {node?.graph && (
              <button type="button" onClick={() => editor.enter(node.path)}>
                Enter
              </button>
            )}
            <button type="button" disabled={!canChange || !node} onClick={rename}>
              Rename
            </button>
            <button type="button" disabled={!canChange} onClick={duplicate}>
              Duplicate
            </button>
            <button type="button" disabled={!canChange} onClick={wrap}>
              Wrap
            </button>
            <button type="button" disabled={!canChange} onClick={remove}>
              Delete
            </button>
          </div>
        )}
      </div>
      <div className="tools right" role="toolbar" aria-label="View">
        <button type="button" aria-label="Zoom out" onClick={() => void flow.zoomOut()}>
          −
        </button>
        <button type="button" aria-label="Zoom in" onClick={() => void flow.zoomIn()}>
          +
        </button>
        <button type="button" onClick={() => fit()}>
          Fit
        </button>
      </div>
    </>
  );
}
