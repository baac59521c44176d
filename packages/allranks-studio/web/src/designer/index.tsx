// The designer: a pipeline's file as a canvas, with forms and its code.
import { ReactFlowProvider } from "@xyflow/react";
import { useEffect } from "react";
import { Button, Select } from "../controls";
import { count } from "../format";
import { Empty, State, useMedia } from "../parts";
import { view } from "../router";
import { createSavedStore, useStore } from "../store";
import { Canvas } from "./canvas";
import { Code } from "./code";
import { Dialogs } from "./dialogs";
import { Provider, useEditor } from "./editor";
import { Findings, Form } from "./form";
import { Side } from "./palette";
import { Start } from "./start";

// The style arrives before anything is drawn: the canvas measures what it draws.
const style = Object.assign(document.createElement("link"), { rel: "stylesheet", href: "/static/designer.css" });
document.head.append(style);
await new Promise((done) => Object.assign(style, { onload: done, onerror: done }));

export default function Designer({ folder, path }: { folder: string; path: string }) {
  if (useMedia("(max-width: 899px)")) {
    return (
      <Empty title="The designer needs more room.">
        <p>It works from 900 pixels of width. Runs can be read on any screen.</p>
      </Empty>
    );
  }
  if (!path) return <Start folder={folder} />;
  return (
    <Provider key={`${folder} ${path}`} folder={folder} path={path}>
      <ReactFlowProvider>
        <Workbench />
      </ReactFlowProvider>
    </Provider>
  );
}

const codeSide = createSavedStore<string>("designer.code", "below");

function Workbench() {
  const { document, root, session, editable } = useEditor();
  const side = useStore(codeSide);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const isField = event.target instanceof HTMLElement && event.target.closest("input, select, textarea, dialog");
      if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z" || isField || !editable) return;
      event.preventDefault();
      event.shiftKey ? session.redo() : session.undo();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [session, editable]);
  return (
    <div className="designer">
      <Bar />
      <Side />
      <div className={`middle code-${side}`}>
        {root ? <Canvas /> : <Empty title="The code cannot be read yet." />}
        {side !== "hidden" && <Code />}
      </div>
      <Form />
      <Refused />
      <Dialogs />
      <p className="hidden" role="status">
        {document.undo && `Undo: ${document.undo}.`} {document.redo && `Redo: ${document.redo}.`}
      </p>
    </div>
  );
}

function Bar() {
  const { document, root, session, pending, ask, editable, run, follow, goTo } = useEditor();
  const side = useStore(codeSide);
  const { findings } = document;
  const amount = (level: string) => findings.filter((each) => each.level === level).length;
  const amounts = ["error", "warning"].filter(amount).map((level) => count(amount(level), level));
  const cause = findings.find((each) => each.level === "error" && each.line > 0);
  return (
    <div className="strip" role="toolbar" aria-label="Document">
      <a href={view(["designer"])}>Pipelines</a>
      <h1>{document.path}</h1>
      <span className={amount("error") ? "wrong" : "soft"}>
        {pending.length ? "Checking …" : amounts.join(", ") || "no findings"}
      </span>
      {!document.current && (
        <Button
          className="plain"
          text={`${root ? "The canvas shows the last code that could be read. " : ""}Line ${cause?.line}: ${cause?.found}`}
          onClick={() => goTo(cause?.line ?? 1)}
        />
      )}
      {document.read_only && <span className="badge">read-only</span>}
      <span className="space" />
      {run ? (
        <>
          <State status={run.run.status} />
          <a href={view(["runs", run.run.id])}>Open the run</a>
          <Button text="Back to editing" onClick={() => follow("")} />
        </>
      ) : (
        <>
          <Button text="Undo" disabled={!editable || !document.undo} title={document.undo} onClick={session.undo} />
          <Button text="Redo" disabled={!editable || !document.redo} title={document.redo} onClick={session.redo} />
        </>
      )}
      <Select label="Code" options={["below", "beside", "hidden"]} value={side} onChange={codeSide.set} />
      <Button text="Export" onClick={() => ask({ kind: "export" })} />
      <Button text="Run" className="primary" disabled={!document.current} onClick={() => ask({ kind: "run" })} />
    </div>
  );
}

// What the server refused, and why. Nothing was changed.
function Refused() {
  const { refused, draft, session } = useEditor();
  if (!refused) return null;
  const again = draft === null ? "Make the change again" : "Replace the file by what was typed";
  const { message = "Nothing was changed.", document, problems = [], difference = [], retry } = refused;
  return (
    <div className="notice" role="alert">
      <b>{document ? "Another program or page has changed the file." : message}</b>
      {difference.length > 0 && <pre>{["The edit would also have changed:", ...difference].join("\n")}</pre>}
      <Findings findings={problems} />
      <div>
        {document && <Button className="primary" text={again} onClick={retry} />}{" "}
        {draft !== null && <Button text="Drop what was typed" onClick={session.drop} />}{" "}
        <Button text="Close" onClick={session.dismiss} />
      </div>
    </div>
  );
}
