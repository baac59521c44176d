// The left side: components that can be added, or the nodes of the graph as a list.
import { type KeyboardEvent, useId, useMemo, useState } from "react";
import type { Node, PaletteItem } from "../api";
import { useEditor } from "./editor";
import { KINDS } from "./node";

export const PALETTE_DATA = "application/x-allranks-component";

export function Side() {
  const [tab, setTab] = useState<"components" | "nodes">("components");
  return (
    <aside className="side" aria-label="Components and nodes">
      <div className="group">
        <button type="button" aria-pressed={tab === "components"} onClick={() => setTab("components")}>
          Components
        </button>
        <button type="button" aria-pressed={tab === "nodes"} onClick={() => setTab("nodes")}>
          Nodes
        </button>
      </div>
      {tab === "components" ? <Palette /> : <Outline />}
    </aside>
  );
}

const ORIGINS: Record<PaletteItem["origin"], string> = { project: "Project", registered: "Registered", library: "" };

function Palette() {
  const { palette, add, editable } = useEditor();
  const [query, setQuery] = useState("");
  const [shown, setShown] = useState("");
  const id = useId();
  const found = useMemo(() => search(palette, query), [palette, query]);
  const enter = (event: KeyboardEvent) => {
    if (event.key === "Enter" && found[0]) add(found[0]);
    if (event.key === "ArrowDown") step(event, 1);
  };
  return (
    <>
      <input
        type="search"
        aria-label="Search components"
        placeholder="Search, Enter adds"
        value={query}
        onChange={(event) => setQuery(event.target.value)}
        onKeyDown={enter}
      />
      <div className="cards">
        {groups(found, query !== "").map(([group, items]) => (
          <section key={group} aria-labelledby={`${id}${group}`}>
            <h3 id={`${id}${group}`}>{group}</h3>
            <ul>
              {items.map((item) => (
                <li key={item.component}>
                  <button
                    type="button"
                    className="card"
                    draggable={editable}
                    disabled={!editable}
                    onDragStart={(event) => {
                      event.dataTransfer.setData(PALETTE_DATA, item.component);
                      event.dataTransfer.effectAllowed = "copy";
                    }}
                    onDoubleClick={() => add(item)}
                    onKeyDown={(event) => {
                      if (event.key === "Enter") add(item);
                      if (event.key === "ArrowDown" || event.key === "ArrowUp")
                        step(event, event.key === "ArrowDown" ? 1 : -1);
                    }}
                    onClick={(event) => event.detail > 0 && setShown(shown === item.component ? "" : item.component)}
                    onFocus={(event) => event.target.matches(":focus-visible") && setShown(item.component)}
                    aria-label={`${item.display_name}, ${item.name} ${item.version}`}
                    title="Drag it onto the canvas, or press Enter"
                  >
                    <b>{item.display_name}</b>
                    <small>
                      {[item.layout, ORIGINS[item.origin] && `v${item.version}`].filter(Boolean).join(" · ")}
                    </small>
                  </button>
                  {shown === item.component && <Details item={item} />}
                </li>
              ))}
            </ul>
          </section>
        ))}
        {!found.length && <p className="soft">No component has this in its name or description.</p>}
      </div>
    </>
  );
}

function Details({ item }: { item: PaletteItem }) {
  const { add, editable } = useEditor();
  const names = (ports: PaletteItem["inputs"], some: boolean) => {
    const known = some ? ports.filter((port) => !port.optional && port.default === null) : ports;
    return known.map((port) => `${port.name}: ${port.type}`).join(", ") || "none";
  };
  return (
    <div className="details">
      <p>{item.description}</p>
      <dl>
        <dt>Needs</dt>
        <dd>{names(item.inputs, true)}</dd>
        <dt>Gives</dt>
        <dd>{names(item.outputs, false)}</dd>
        <dt>Version</dt>
        <dd>
          {item.name} {item.version}
        </dd>
      </dl>
      <button type="button" disabled={!editable} onClick={() => add(item)}>
        Add
      </button>
    </div>
  );
}

// Move the focus to the card before or after this one.
function step(event: KeyboardEvent, by: number): void {
  const side = (event.currentTarget as HTMLElement).closest(".side");
  const stops = [...(side?.querySelectorAll<HTMLElement>("input, .card") ?? [])];
  stops[stops.indexOf(event.currentTarget as HTMLElement) + by]?.focus();
  event.preventDefault();
}

// Return the items that contain each word: those with it in their name first.
export function search(items: PaletteItem[], query: string): PaletteItem[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const rank = (item: PaletteItem) => {
    const name = `${item.display_name} ${item.name}`.toLowerCase();
    if (words.every((word) => name.includes(word))) return words.some((word) => name.startsWith(word)) ? 0 : 1;
    const text = `${name} ${item.description} ${item.group}`.toLowerCase();
    return words.every((word) => text.includes(word)) ? 2 : 3;
  };
  const ranked = items.map((item) => ({ item, rank: rank(item) })).filter((each) => each.rank < 3);
  return ranked.sort((a, b) => a.rank - b.rank).map((each) => each.item);
}

function groups(items: PaletteItem[], isSearch: boolean): [string, PaletteItem[]][] {
  if (isSearch) return items.length ? [["Found", items]] : [];
  const found = new Map<string, PaletteItem[]>();
  for (const item of items) {
    const group = ORIGINS[item.origin] || item.group;
    found.set(group, [...(found.get(group) ?? []), item]);
  }
  const order = Object.values(ORIGINS).filter(Boolean);
  const place = (group: string) => (order.includes(group) ? order.indexOf(group) : order.length);
  return [...found].sort(([a], [b]) => place(a) - place(b));
}

// The nodes by name, also those that are not in sight.
function Outline() {
  const { root } = useEditor();
  const [query, setQuery] = useState("");
  return (
    <>
      <input
        type="search"
        aria-label="Search nodes"
        placeholder="Search nodes"
        value={query}
        onChange={(event) => setQuery(event.target.value)}
      />
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
