// The left side: components that can be added, or the nodes of the graph as a list.
import { type KeyboardEvent, useMemo, useState } from "react";
import type { Node, PaletteItem, Port } from "../api";
import { Button, Search, Switch } from "./controls";
import { useEditor } from "./editor";
import { isMissing } from "./form";
import { KINDS } from "./node";

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
  const found = useMemo(() => search(palette, query), [palette, query]);
  const press = (event: KeyboardEvent) => {
    if (event.key === "Enter" && found[0]) add(found[0]);
    walk(event);
  };
  return (
    <>
      <Search placeholder="Search components" value={query} onChange={setQuery} onKeyDown={press} />
      <div className="cards">
        {groups(found, query !== "").map(([group, items]) => (
          <section key={group}>
            <h2>{group}</h2>
            <ul aria-label={group}>
              {items.map((item) => (
                <Card key={item.component} item={item} />
              ))}
            </ul>
          </section>
        ))}
        {!found.length && <p className="soft">{palette.length ? "No component has this in its name." : "Loading …"}</p>}
      </div>
    </>
  );
}

function Card({ item }: { item: PaletteItem }) {
  const { add, editable } = useEditor();
  const [isOpen, setOpen] = useState(false);
  const names = (ports: Port[]) => ports.map((port) => `${port.name}: ${port.type}`).join(", ") || "nothing";
  const needed = item.inputs.filter((port) => isMissing({ ...port, value: null, line: 0, locked: "" }));
  return (
    <li>
      <button
        type="button"
        className="card"
        draggable={editable}
        aria-expanded={isOpen}
        title="Drag it onto the canvas, or press Enter"
        onDragStart={(event) => event.dataTransfer.setData(PALETTE_DATA, item.component)}
        onClick={() => setOpen(!isOpen)}
        onDoubleClick={() => add(item)}
        onKeyDown={(event) => {
          walk(event);
          if (event.key !== "Enter") return;
          event.preventDefault();
          add(item);
        }}
      >
        <b>{item.display_name}</b>
        <small>{[item.layout, item.origin !== "library" && item.version].filter(Boolean).join(" · ")}</small>
      </button>
      {isOpen && (
        <div className="details">
          <p>{item.description}</p>
          <dl>
            <dt>Needs</dt>
            <dd>{names(needed)}</dd>
            <dt>Gives</dt>
            <dd>{names(item.outputs)}</dd>
            <dt>Component</dt>
            <dd>{`${item.name} ${item.version}`}</dd>
          </dl>
          <Button text="Add" disabled={!editable} onClick={() => add(item)} />
        </div>
      )}
    </li>
  );
}

// Move the focus to the card before or after this one.
function walk(event: KeyboardEvent): void {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const here = event.currentTarget as HTMLElement;
  if (!by) return;
  event.preventDefault();
  const stops = [...(here.closest(".side")?.querySelectorAll<HTMLElement>("input, .card") ?? [])];
  stops[stops.indexOf(here) + by]?.focus();
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

// Return the items by group: those of the project first, then registered ones, then the library's.
function groups(items: PaletteItem[], isSearch: boolean): [string, PaletteItem[]][] {
  const found = new Map<string, PaletteItem[]>([
    [ORIGINS.project, []],
    [ORIGINS.registered, []],
  ]);
  for (const item of items) {
    const group = isSearch ? "Found" : ORIGINS[item.origin] || item.group;
    found.set(group, [...(found.get(group) ?? []), item]);
  }
  return [...found].filter(([, members]) => members.length);
}

// The nodes by name, also those that are not in sight.
function Outline() {
  const { root } = useEditor();
  const [query, setQuery] = useState("");
  return (
    <>
      <Search placeholder="Search nodes" value={query} onChange={setQuery} />
      <div className="cards">
        <Nodes nodes={root?.nodes ?? []} query={query.toLowerCase()} />
      </div>
    </>
  );
}

function Nodes({ nodes, query }: { nodes: Node[]; query: string }) {
  const { selection, select, document } = useEditor();
  return (
    <ul className="outline">
      {nodes.map((node) => (
        <li key={node.path}>
          {node.path.toLowerCase().includes(query) && (
            <button
              type="button"
              className="plain"
              aria-pressed={selection.includes(node.path)}
              onClick={() => select([node.path], true)}
            >
              <span aria-hidden="true">{KINDS[node.kind][0]}</span> {node.name}{" "}
              <small>{node.note || node.component}</small>
              {document.findings.some((each) => each.node === node.path) && <span className="count error">!</span>}
            </button>
          )}
          {node.graph && <Nodes nodes={node.graph.nodes} query={query} />}
        </li>
      ))}
    </ul>
  );
}
