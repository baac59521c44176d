// The designer: a pipeline's file as a canvas, with forms and its code.
import { ReactFlowProvider } from "@xyflow/react";
import { useEffect, useState } from "react";
import { Empty, Loading, Problem, State } from "../parts";
import { view } from "../router";
import { createSavedStore, useStore } from "../store";
import { Canvas } from "./canvas";
import { Code } from "./code";
import { Dialogs } from "./dialogs";
import { Provider, useEditor } from "./editor";
import { Findings, Form } from "./form";
import { Side } from "./palette";
import { Split } from "./split";
import { Start } from "./start";

const NARROW = "(max-width: 899px)";

export default function Designer({ folder, path }: { folder: string; path: string }) {
  const isNarrow = useMedia(NARROW);
  const hasStyle = useStylesheet("/static/designer.css");
  if (!hasStyle) return <Loading />;
  if (isNarrow) {
    return (
      <Empty title="The designer needs more room.">
        <p>It works from 900 pixels of width. Runs can be read on any screen.</p>
      </Empty>
    );
  }
  if (!path) return <Start folder={folder} />;
  const waiting = (error: unknown, again: () => void) =>
    error ? (
      <div className="page">
        <Problem error={error}>
          <button type="button" onClick={again}>
            Try again
          </button>{" "}
          <a href={view(["designer"])}>All pipelines</a>
        </Problem>
      </div>
    ) : (
      <Loading />
    );
  return (
    <Provider key={`${folder} ${path}`} folder={folder} path={path} waiting={waiting}>
      <ReactFlowProvider>
        <Workbench />
      </ReactFlowProvider>
    </Provider>
  );
}

const codeSide = createSavedStore<"below" | "beside" | "hidden">("designer.code", "below");

function Workbench() {
  const editor = useEditor();
  const { session, said } = editor;
  const side = useStore(codeSide);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const isField = event.target instanceof HTMLElement && event.target.closest("input, select, textarea, dialog");
      if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z" || isField) return;
      event.preventDefault();
      event.shiftKey ? session.redo() : session.undo();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [session]);
  return (
    <div className="designer">
      <Bar />
      <Side />
      <div className={`middle ${side}`}>
        {editor.graph ? <Canvas /> : <Unreadable />}
        {side !== "hidden" && (
          <>
            <Split side={side} />
            <Code />
          </>
        )}
      </div>
      <Form />
      <NoticeBar />
      <Dialogs />
      <p className="hidden" role="status">
        {said}
      </p>
    </div>
  );
}

function Bar() {
  const { document, session, waiting, ask, editable, run, follow } = useEditor();
  const side = useStore(codeSide);
  const count = (level: string) => document.findings.filter((each) => each.level === level).length;
  const [errors, warnings] = [count("error"), count("warning")];
  const problems = [errors && `${errors} errors`, warnings && `${warnings} warnings`].filter(Boolean).join(", ");
  return (
    <div className="strip" role="toolbar" aria-label="Document">
      <a href={view(["designer"])}>Pipelines</a>
      <b title={document.path}>{document.path}</b>
      <span className={errors ? "wrong" : "soft"}>{waiting ? "Checking …" : problems || "no findings"}</span>
      {!document.current && <span className="wrong">The code cannot be read: this is the last good graph</span>}
      {document.read_only && <span className="badge">read-only</span>}
      <span className="space" />
      {run ? (
        <>
          <State status={run.run.status} />
          <a href={view(["runs", run.run.id])}>Open the run</a>
          <button type="button" onClick={() => follow("")}>
            Back to editing
          </button>
        </>
      ) : (
        <>
          <button type="button" disabled={!editable || !document.undo} title={document.undo} onClick={session.undo}>
            Undo
          </button>
          <button type="button" disabled={!editable || !document.redo} title={document.redo} onClick={session.redo}>
            Redo
          </button>
        </>
      )}
      <select
        aria-label="Place of the code"
        value={side}
        onChange={(event) => codeSide.set(event.target.value as typeof side)}
      >
        <option value="below">Code below</option>
        <option value="beside">Code beside</option>
        <option value="hidden">No code</option>
      </select>
      <button type="button" onClick={() => ask({ kind: "export" })}>
        Export
      </button>
      <button type="button" className="primary" disabled={!document.current} onClick={() => ask({ kind: "run" })}>
        Run
      </button>
    </div>
  );
}

// What the server refused, and why. Nothing was changed.
function NoticeBar() {
  const { notice, session } = useEditor();
  if (!notice) return null;
  return (
    <div className="notice" role="alert">
      <b>{notice.title}</b>
      {notice.lines.length > 0 && <pre>{notice.lines.join("\n")}</pre>}
      <Findings findings={notice.problems} />
      {notice.retry && (
        <button type="button" className="primary" onClick={notice.retry}>
          Make the change again
        </button>
      )}
      <button type="button" onClick={session.dismiss}>
        Close
      </button>
    </div>
  );
}

function Unreadable() {
  const { document } = useEditor();
  return (
    <section className="canvas" aria-label="Canvas">
      <Empty title="The code cannot be read yet.">
        <Findings findings={document.findings} />
      </Empty>
    </section>
  );
}

function useMedia(query: string): boolean {
  const [matches, setMatches] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const media = matchMedia(query);
    const update = () => setMatches(media.matches);
    media.addEventListener("change", update);
    return () => media.removeEventListener("change", update);
  }, [query]);
  return matches;
}

// Load a stylesheet once. Return whether it has arrived: the canvas measures what it draws.
function useStylesheet(url: string): boolean {
  const [isLoaded, setLoaded] = useState(() => document.querySelector(`link[href="${url}"][data-loaded]`) !== null);
  useEffect(() => {
    if (isLoaded) return;
    const link = document.createElement("link");
    link.rel = "stylesheet";
    link.href = url;
    const finish = () => {
      link.dataset.loaded = "";
      setLoaded(true);
    };
    link.addEventListener("load", finish);
    link.addEventListener("error", finish);
    document.head.append(link);
  }, [url, isLoaded]);
  return isLoaded;
}
