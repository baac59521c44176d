// The first view: pipelines of the folder, and new ones.
import { useState } from "react";
import type { PipelineFile } from "../api";
import { Loading, Problem } from "../parts";
import { navigate, view } from "../router";
import { post, useServer } from "../server";
import { Name } from "./dialogs";

const EMPTY: PipelineFile = { path: "", title: "New pipeline", origin: "library" };

export function Start({ folder }: { folder: string }) {
  const { data, error } = useServer<PipelineFile[]>("/api/pipelines", { folder }, (event) => event.kind === "document");
  const [source, setSource] = useState<PipelineFile | null>(null);
  const create = async (path: string) => {
    await post("/api/document/new", { folder, path, source: source?.path });
    navigate(view(["designer"], { path }));
  };
  if (error) return <Problem error={error} />;
  if (!data) return <Loading />;
  const [mine, library] = ["project", "library"].map((origin) => data.filter((each) => each.origin === origin));
  return (
    <div className="page">
      <h1>Pipelines</h1>
      <ul className="tiles" aria-label="Pipelines of this folder">
        {mine?.map((each) => (
          <li key={each.path}>
            <a href={view(["designer"], { path: each.path })}>
              <b>{each.title}</b>
              <small>{each.path}</small>
            </a>
          </li>
        ))}
        {!mine?.length && <li className="soft">This folder has no pipelines yet.</li>}
      </ul>
      <h2>New pipeline</h2>
      <ul className="tiles" aria-label="New pipeline">
        {[EMPTY, ...(library ?? [])].map((each) => (
          <li key={each.path}>
            <button type="button" onClick={() => setSource(each)}>
              <b>{each.path ? each.title : "Empty"}</b>
              <small>{fileName(each.path)}</small>
            </button>
          </li>
        ))}
      </ul>
      {source && (
        <Name
          title={source.title}
          label="Python file in this folder"
          value={fileName(source.path) || "my_pipeline.py"}
          submit="Create"
          done={create}
          onClose={() => setSource(null)}
        />
      )}
    </div>
  );
}

const fileName = (path: string) => path.replace(/^.*\//, "");
