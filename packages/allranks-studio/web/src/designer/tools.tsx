// What can be done with the selection and the view: buttons, and the same as shortcuts.
import { useReactFlow } from "@xyflow/react";
import type { Edit } from "../api";
import { Button } from "../controls";
import { useEditor } from "./editor";
import { freeName, nodeAt, parentOf } from "./ports";

export function useActions() {
  const { selection, root, session, editable, graph, select, ask, remove } = useEditor();
  const [only = ""] = selection;
  const node = selection.length === 1 ? nodeAt(root, only) : undefined;
  const canChange = editable && selection.length > 0 && !selection.some((path) => nodeAt(root, path)?.lock);
  const names = selection.join(", ");
  const askName = (title: string, submit: string, value: string, edit: (name: string) => Edit) => {
    const done = async (name: string) => {
      const after = await session.edit(`${title}: ${name}.`, edit(name));
      if (after) select([[parentOf(only), name].filter(Boolean).join(".")]);
    };
    if (canChange) ask({ kind: "name", title, value, submit, done });
  };
  const rename = () =>
    node &&
    askName(`Rename ${node.name}`, "Rename", node.name, (name) => ({ op: "rename_node", node: node.path, name }));
  const wrap = () => {
    const value = freeName(graph, node ? `${node.name}_pipeline` : "part");
    askName(`Wrap ${names}`, "Wrap", value, (name) => ({ op: "wrap_nodes", nodes: selection, name }));
  };
  const duplicate = () => {
    const edits = selection.map((path): Edit => ({ op: "duplicate_node", node: path, name: "" }));
    if (canChange) session.edit(`Duplicated ${names}.`, ...edits);
  };
  return { node, canChange, rename, wrap, duplicate, remove: () => remove(selection, []) };
}

export function CanvasTools({ fit }: { fit: () => void }) {
  const { view, enter, document, selection, session, editable } = useEditor();
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
        <Button text="Arrange" disabled={!editable} title="Forget where nodes were moved" onClick={session.arrange} />
      </div>
    </>
  );
}
