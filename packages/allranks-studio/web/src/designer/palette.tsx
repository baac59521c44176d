// The left side: components that can be added, or the nodes of the graph as a list.
import { type KeyboardEvent, useMemo, useState } from "react";
import type { PaletteItem, Port } from "../api";
import { Button, Search, Switch } from "../controls";
import { Problem } from "../parts";
import { useEditor } from "./editor";
import { KINDS } from "./node";
import { allNodes, isMissing } from "./ports";

export const PALETTE_DATA = "application/x-allranks-component";

const TABS = ["Components", "Nodes"] as const;

export function Side() {
  const [tab, setTab] = useState<string>(TABS[0]);
  return (
    <aside className="side" aria-label="Components and nodes">
      <Switch label="Side" options={TABS} value={tab} onChange={setTab} />
      {tab === TABS[0] ? <Palette /> : <Outline />}
    </aside>
  );
}

const ORIGINS = { project: "Project", registered: "Registered", library: "" };

function Palette() {
  const { palette, add } = useEditor();
  const [query, setQuery] = useState("");
  const found = useMemo(() => search(palette.data ?? [], query), [palette.data, query]);
  // The project's are first, then the registered ones.
  const groups = Map.groupBy(found, (item) => (query ? "Found" : ORIGINS[item.origin] || item.group));
  const addFirst = (event: KeyboardEvent) => event.key === "Enter" && found[0] && add(found[0]);
  return (
    <>
      <Search placeholder="Search components" value={query} onChange={setQuery} onKeyDown={addFirst} />
      <div className="cards">
        {[...groups].map(([group, items]) => (
          <section key={group}>
            <h2>{group}</h2>
            <ul aria-label={group}>
              {items.map((item) => (
                <li key={item.component}>
                  <Card item={item} />
                </li>
              ))}
            </ul>
          </section>
        ))}
        {palette.error && <Problem error={palette.error} />}
        {!found.length && <p className="soft">{palette.data ? "No component has this in its name." : "Loading …"}</p>}
      </div>
    </>
  );
}

function Card({ item }: { item: PaletteItem }) {
  const { add, editable } = useEditor();
  const names = (ports: Port[]) => ports.map((port) => `${port.name}: ${port.type}`).join(", ") || "nothing";
  const about = [item.description, `Needs ${names(item.inputs.filter(isMissing))}`, `Gives ${names(item.outputs)}`];
  return (
    <button
      type="button"
      className="card"
      disabled={!editable}
      draggable={editable}
      title={about.join("\n")}
      onDragStart={(event) => event.dataTransfer.setData(PALETTE_DATA, item.component)}
      onClick={() => add(item)}
    >
      <b>{item.display_name}</b>
      <small>{[item.layout, item.origin !== "library" && item.version].filter(Boolean).join(" · ")}</small>
    </button>
  );
}

// Return the items that contain each word: those with it in their name first, the shortest first.
export function search(items: PaletteItem[], query: string): PaletteItem[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const rank = ({ display_name, name, description, group }: PaletteItem) => {
    const names = `${display_name} ${name}`.toLowerCase();
    if (words.every((word) => names.includes(word))) return words.length ? display_name.length : 0;
    const text = `${names} ${description} ${group}`.toLowerCase();
    return words.every((word) => text.includes(word)) ? 1000 : Number.POSITIVE_INFINITY;
  };
  const ranked = items.map((item) => ({ item, rank: rank(item) })).filter((each) => Number.isFinite(each.rank));
  return ranked.sort((a, b) => a.rank - b.rank).map((each) => each.item);
}

// The nodes by name, also those that are not in sight.
function Outline() {
  const { root, selection, select, document } = useEditor();
  const [query, setQuery] = useState("");
  const found = allNodes(root).filter((node) => node.path.toLowerCase().includes(query.toLowerCase()));
  const failing = new Set(document.findings.map((each) => each.node));
  return (
    <>
      <Search placeholder="Search nodes" value={query} onChange={setQuery} />
      <ul className="cards" aria-label="Nodes">
        {found.map(({ path, name, kind, note, component }) => (
          <li key={path} className={`level-${Math.min(path.split(".").length, 5)}`}>
            <Button
              className="plain"
              text={`${KINDS[kind][0]} ${name} ${failing.has(path) ? "!" : ""}`}
              title={note || component}
              aria-pressed={selection.includes(path)}
              onClick={() => select([path], true)}
            />
          </li>
        ))}
      </ul>
    </>
  );
}
