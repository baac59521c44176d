// What can be done with the selection and the view: buttons, and the same as shortcuts.
import { useReactFlow } from "@xyflow/react";
import type { Edit } from "../api";
import { Button } from "../controls";
import { useEditor } from "./editor";
import { freeName, graphAt, nodeAt, parentOf } from "./ports";

export function useActions() {
  const { selection, node, root, session, editable, select, ask, remove } = useEditor();
  const [only = ""] = selection;
  const canChange = editable && selection.length > 0 && !selection.some((path) => nodeAt(root, path)?.lock);
  const askName = (title: string, submit: string, value: string, edit: (name: string) => Edit) => {
    const done = async (name: string) => {
      const after = await session.edit(edit(name));
      if (after) select([[parentOf(only), name].filter(Boolean).join(".")]);
    };
    if (canChange) ask({ kind: "name", title, value, submit, done });
  };
  const rename = () =>
    node &&
    askName(`Rename ${node.name}`, "Rename", node.name, (name) => ({ op: "rename_node", node: node.path, name }));
  const wrap = () => {
    const value = freeName(graphAt(root, parentOf(only))?.nodes ?? [], node ? `${node.name}_pipeline` : "part");
    askName(`Wrap ${selection.join(", ")}`, "Wrap", value, (name) => ({ op: "wrap_nodes", nodes: selection, name }));
  };
  const duplicate = () => {
    const edits = selection.map((path): Edit => ({ op: "duplicate_node", node: path, name: "" }));
    if (canChange) session.edit(...edits);
  };
  return { canChange, rename, wrap, duplicate, remove: () => remove(selection, []) };
}

export function CanvasTools({ fit }: { fit: () => void }) {
  const { selection, node, session, editable } = useEditor();
  const flow = useReactFlow();
  const { canChange, rename, duplicate, wrap, remove } = useActions();
  return (
    <>
      {selection.length > 0 && (
        <div className="tools left" role="toolbar" aria-label="Selection">
          <Button text="Rename" disabled={!canChange || !node} onClick={rename} />
          <Button text="Duplicate" disabled={!canChange} onClick={duplicate} />
          <Button text="Wrap" disabled={!canChange} onClick={wrap} />
          <Button text="Delete" disabled={!canChange} onClick={remove} />
        </div>
      )}
      <div className="tools right" role="toolbar" aria-label="View">
        <Button text="−" name="Zoom out" onClick={() => flow.zoomOut()} />
        <Button text="+" name="Zoom in" onClick={() => flow.zoomIn()} />
        <Button text="Fit" onClick={fit} />
        <Button text="Arrange" disabled={!editable} title="Forget where nodes were moved" onClick={session.arrange} />
      </div>
    </>
  );
}
