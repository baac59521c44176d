// The first view: pipelines of the folder, and new ones.
import { useState } from "react";
import type { Document, PipelineFile } from "../api";
import { Dialog, Loading, Problem } from "../parts";
import { navigate, view } from "../router";
import { post, useServer } from "../server";

export const address = (path: string) => view(["designer"], { path });

export function Start({ folder }: { folder: string }) {
  const { data, error } = useServer<PipelineFile[]>("/api/pipelines", { folder }, (event) => event.kind === "document");
  const [source, setSource] = useState<PipelineFile | "" | null>(null);
  if (error) return <Problem error={error} />;
  if (!data) return <Loading />;
  const mine = data.filter((each) => each.origin === "project");
  const library = data.filter((each) => each.origin === "library");
  return (
    <div className="page start">
      <h1>Pipelines</h1>
      <ul className="tiles" aria-label="Pipelines of this folder">
        {mine.map((each) => (
          <li key={each.path}>
            <a href={address(each.path)}>
              <b>{each.title}</b>
              <small>{each.path}</small>
            </a>
          </li>
        ))}
        <li>
          <button type="button" onClick={() => setSource("")}>
            <b>New pipeline</b>
            <small>empty</small>
          </button>
        </li>
      </ul>
      {library.length > 0 && <h2>New from the library</h2>}
      <ul className="tiles" aria-label="Pipelines of the library">
        {library.map((each) => (
          <li key={each.path}>
            <button type="button" onClick={() => setSource(each)}>
              <b>{each.title}</b>
              <small>{each.path.replace(/^.*\//, "")}</small>
            </button>
          </li>
        ))}
      </ul>
      {source !== null && <New folder={folder} source={source} onClose={() => setSource(null)} />}
    </div>
  );
}

function New({ folder, source, onClose }: { folder: string; source: PipelineFile | ""; onClose: () => void }) {
  const [path, setPath] = useState(source ? source.path.replace(/^.*\//, "") : "my_pipeline.py");
  const [error, setError] = useState<unknown>(null);
  const create = () =>
    post<Document>("/api/document/new", { folder, path, source: source ? source.path : "" }).then(
      () => navigate(address(path)),
      setError,
    );
  return (
    <Dialog
      title={source ? `New from ${source.title}` : "New pipeline"}
      onClose={onClose}
      submit="Create"
      disabled={!path.trim()}
      onSubmit={() => void create()}
    >
      <label htmlFor="new-path">File, .py or .yaml, in this folder</label>
      <input id="new-path" value={path} onChange={(event) => setPath(event.target.value)} />
      {error !== null && <Problem error={error} />}
    </Dialog>
  );
}
