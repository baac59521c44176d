// The frame of all views: the header, the messages, and the view of the current address.
import { Component, type ReactNode, useEffect } from "react";
import type { Folder } from "./api";
import { Button, Select } from "./controls";
import { connection, onEvent } from "./events";
import { later } from "./later";
import { Empty, Messages, Problem, Tabs } from "./parts";
import { type Address, navigate, useAddress, view } from "./router";
import Runs from "./runs";
import { unauthorised, useServer } from "./server";
import { useStore } from "./store";

// Loaded when they are opened: the table of runs is on screen first.
const Run = later(() => import("./run"));
const Compare = later(() => import("./runs/compare"));
const Schedules = later(() => import("./schedules"));
const Designer = later(() => import("./designer"));

function View({ folder, address: { path, query } }: { folder: Folder; address: Address }) {
  const [area = "runs", id, tab = "graph"] = path;
  if (area === "runs") return id ? <Run folder={folder} id={id} tab={tab} /> : <Runs folder={folder} />;
  if (area === "compare") return <Compare folder={folder} runs={query.get("runs") ?? ""} />;
  if (area === "schedules") return <Schedules folder={folder} />;
  if (area === "designer") return <Designer folder={folder.id} path={query.get("path") ?? ""} />;
  return (
    <Empty title="There is no such page.">
      <a href={view(["runs"])}>Runs</a>
    </Empty>
  );
}

export function App() {
  const address = useAddress();
  const isUnauthorised = useStore(unauthorised);
  const { data, error, reload } = useServer<{ folders: Folder[] }>("/api/state");
  useEffect(() => onEvent(() => {}), []); // the stream stays open whatever is shown
  useEffect(() => {
    document.title = [...address.path.toReversed(), "allranks studio"].join(" · ");
  }, [address.path]);
  if (isUnauthorised) return <Unauthorised />;
  if (!data) return error && <Failed error={error} fix="Try again" onFix={reload} />;
  const wanted = address.query.get("folder");
  const folder = data.folders.find(({ id }) => id === wanted) ?? data.folders[0];
  if (!folder) return <Empty title="No folder is open." />;
  return (
    <>
      <Header folders={data.folders} folder={folder} area={address.path[0] ?? "runs"} />
      <main>
        <Boundary key={address.path.slice(0, 2).join("/")}>
          <View folder={folder} address={address} />
        </Boundary>
      </main>
      <Messages />
    </>
  );
}

function Failed({ error, fix, onFix }: { error: Error; fix: string; onFix: () => void }) {
  return (
    <div className="page">
      <Problem error={error}>
        <Button text={fix} onClick={onFix} />
      </Problem>
    </div>
  );
}

function Header({ folders, folder, area }: { folders: Folder[]; folder: Folder; area: string }) {
  const stream = useStore(connection);
  const choose = (id: string) => navigate(view([area === "compare" ? "runs" : area], { folder: id }));
  return (
    <header className="top">
      <h1 className="brand">
        allranks <span>studio</span>
      </h1>
      <Tabs
        label="Areas"
        tabs={["Runs", "Designer", "Schedules"].map((name) => [name, view([name.toLowerCase()])])}
        selected={area === "compare" ? "runs" : area}
      />
      <span className="space" />
      {folder.read_only && <span className="badge">read-only</span>}
      {folders.length > 1 ? (
        <Select
          label="Folder"
          value={folder.id}
          options={folders.map(({ id, path }) => [id, path])}
          onChange={choose}
        />
      ) : (
        <span className="folder" title={folder.path}>
          {folder.path.split("/").at(-1)}
        </span>
      )}
      <span className={`connection ${stream}`} role="status">
        {stream === "lost" ? "Connection lost, trying again …" : <span className="hidden">Connected</span>}
      </span>
    </header>
  );
}

function Unauthorised() {
  return (
    <main>
      <h1 className="hidden">allranks studio</h1>
      <Empty title="This browser has no access to the studio.">
        <p>The address that the studio printed works once. A studio that was started again has a new one.</p>
        <p>
          Open it again from the terminal: <code>allranks studio</code>
        </p>
      </Empty>
    </main>
  );
}

// One view's error leaves the header and the other views working.
class Boundary extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state = { error: null };
  static getDerivedStateFromError(error: Error) {
    return { error };
  }
  override render() {
    const { error } = this.state;
    if (!error) return this.props.children;
    return <Failed error={error} fix="Load the page again" onFix={() => location.reload()} />;
  }
}
