// The graph as boxes and wires. Far away it is drawn by overview.tsx, since a thousand nodes are too many for the DOM.
import {
  applyNodeChanges,
  Background,
  BaseEdge,
  type Connection,
  type EdgeChange,
  type EdgeProps,
  type Edge as FlowEdge,
  getViewportForBounds,
  type NodeChange,
  type NodeHandle,
  Position,
  ReactFlow,
  useConnection,
  useStore as useFlowStore,
  useReactFlow,
} from "@xyflow/react";
import { type DragEvent, type KeyboardEvent, useEffect, useMemo, useReducer, useRef, useState } from "react";
import { Button } from "../controls";
import { type Detour, detour, wirePath } from "../wires";
import { useEditor } from "./editor";
import { type BoxNode, BoxView, KINDS } from "./node";
import { Overview } from "./overview";
import { PALETTE_DATA } from "./palette";
import { connectionMisfit, hue, nodeAt } from "./ports";
import { type Box, bounds, HEADER, INPUTS, innerPorts, ROW, type Scene, scene, type Wire } from "./scene";

const TYPES = { box: BoxView };
const EDGES = { wire: WireView };
const FAR = 0.4; // below this zoom, a large graph is drawn by the overview
const LARGE = 60; // nodes
const BAR = 46; // height of the toolbars above the canvas
const ZOOM = { minZoom: 0.02, maxZoom: 2, zoomOnDoubleClick: false };
const KEYS = { deleteKeyCode: null, multiSelectionKeyCode: ["Control", "Meta", "Shift"], connectOnClick: false };
const LOOKS = { elevateEdgesOnSelect: true, proOptions: { hideAttribution: true } };
const ARIA = { "node.a11yDescription.default": "Enter selects, arrow keys move, Delete deletes, F2 renames." };
const NOTHING: Scene = { boxes: [], wires: [] };

export function Canvas() {
  const editor = useEditor();
  const { document, root, open, editable } = editor;
  const flow = useReactFlow<BoxNode>();
  const { positions } = document;
  const drawn = useMemo(() => (root ? scene(positions, root, open) : NOTHING), [positions, root, open]);
  const boxes = useMemo(() => new Map(drawn.boxes.map((box) => [box.node.path, box])), [drawn]);
  const isLarge = drawn.boxes.length > LARGE;
  const isFar = useFlowStore((state) => state.transform[2] < FAR) && isLarge;
  const frame = useRef<HTMLElement>(null);
  const { nodes, changeNodes } = useNodes(drawn, boxes);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set()); // wires
  const edges = useMemo(
    () => (isFar ? [] : drawn.wires.map((wire) => flowEdge(wire, boxes, chosen.has(wire.id), editable))),
    [isFar, drawn, boxes, chosen, editable],
  );

  const misfit = ({ source, sourceHandle, target, targetHandle }: Connection | FlowEdge) =>
    connectionMisfit(root, source, sourceHandle ?? "", target, targetHandle?.slice(3) ?? "");
  const connect = ({ source, sourceHandle, target, targetHandle }: Connection) => {
    const [side, port = ""] = sourceHandle?.split(":") ?? [];
    const value = { kind: "output", node: nodeAt(root, source)?.name ?? "", port } as const;
    editor.set(target, targetHandle?.slice(3) ?? "", side === "inner" ? { kind: "input", name: port } : value);
  };

  const drop = (event: DragEvent) => {
    event.preventDefault();
    const item = editor.palette.data?.find((each) => each.component === event.dataTransfer.getData(PALETTE_DATA));
    const at = flow.screenToFlowPosition({ x: event.clientX - 40, y: event.clientY - 16 });
    const around = drawn.boxes.filter((box) => box.open && contains(box, at)).at(-1);
    const [dx, dy] = drawn.boxes.find((box) => around && box.parent === around.node.path)?.shift ?? [0, 0];
    const [x, y] = [at.x - (around ? around.left + dx : 0), at.y - (around ? around.top + dy : 0)];
    if (item) editor.add(item, around?.node.path ?? "", [Math.round(x), Math.round(y)]);
  };

  const fit = () => {
    const size = frame.current;
    if (!drawn.boxes.length || !size) return;
    const area = bounds(drawn.boxes.filter((box) => !box.parent));
    const padding = { x: "30px", top: `${BAR}px`, bottom: `${BAR}px` } as const;
    flow.setViewport(getViewportForBounds(area, size.clientWidth, size.clientHeight, ZOOM.minZoom, 1, padding));
  };
  const [fitted, refit] = useReducer((before: number) => before + 1, 0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: when it is asked for, not after each change of the graph
  useEffect(fit, [fitted]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: once for each request
  useEffect(() => {
    const box = editor.reveal && boxes.get(editor.reveal.path);
    if (!box || isVisible(box, flow.getViewport(), frame.current)) return;
    const zoom = Math.max(flow.getZoom(), 0.7);
    flow.setCenter(box.left + box.width / 2, box.top + box.height / 2, { zoom });
  }, [editor.reveal]);

  const press = (event: KeyboardEvent) => {
    const remove = () => {
      editor.remove(drawn.wires.filter((wire) => chosen.has(wire.id)));
      setChosen(new Set());
    };
    const keys: Record<string, () => void> = {
      delete: remove,
      backspace: remove,
      f2: editor.rename,
      "ctrl+d": editor.duplicate,
      "ctrl+a": () => editor.select(drawn.boxes.filter((box) => !box.parent).map((box) => box.node.path)),
      f: refit,
    };
    const act = keys[`${event.ctrlKey || event.metaKey ? "ctrl+" : ""}${event.key.toLowerCase()}`];
    if (!act) return;
    event.preventDefault();
    act();
  };
  const clickPane = (event: { clientX: number; clientY: number }) => {
    const at = flow.screenToFlowPosition({ x: event.clientX, y: event.clientY });
    const box = drawn.boxes.filter((each) => isFar && contains(each, at)).at(-1);
    editor.select(box ? [box.node.path] : []);
  };
  const changeEdges = (changes: EdgeChange[]) => setChosen(selected(chosen, changes));
  const allow = (event: DragEvent) => event.preventDefault();

  return (
    <section ref={frame} className="canvas" aria-label="Canvas" onKeyDown={press} onDragOver={allow} onDrop={drop}>
      <ReactFlow<BoxNode>
        nodes={isFar ? [] : nodes}
        edges={edges}
        edgeTypes={EDGES}
        nodeTypes={TYPES}
        onNodesChange={changeNodes}
        onEdgesChange={changeEdges}
        onConnect={connect}
        isValidConnection={(wanted) => !misfit(wanted)}
        onNodeDoubleClick={(_, { data, id }) => data.box.node.graph && editor.toggle(id)}
        onPaneClick={clickPane}
        onlyRenderVisibleElements={isLarge} // otherwise Tab reaches all nodes
        nodesConnectable={editable}
        ariaLabelConfig={ARIA}
        {...ZOOM}
        {...LOOKS}
        {...KEYS}
      >
        {isFar ? <Overview boxes={drawn.boxes} wires={drawn.wires} /> : <Background gap={20} size={1} />}
        <Hint misfit={misfit} />
      </ReactFlow>
      {!drawn.boxes.length && <p className="hint">Drag a component here, or press Enter on one.</p>}
      <Tools fit={refit} />
    </section>
  );
}

// Buttons for the selection and the view.
function Tools({ fit }: { fit: () => void }) {
  const { selection, node, session, editable, canChange, rename, duplicate, wrap, remove } = useEditor();
  const flow = useReactFlow();
  const arrange = () => session.arrange().then(fit);
  return (
    <>
      {selection.length > 0 && (
        <div className="tools left" role="toolbar" aria-label="Selection">
          <Button text="Rename" disabled={!canChange || !node} onClick={rename} />
          <Button text="Duplicate" disabled={!canChange} onClick={duplicate} />
          <Button text="Wrap" disabled={!canChange} onClick={wrap} />
          <Button text="Delete" disabled={!canChange} onClick={() => remove()} />
        </div>
      )}
      <div className="tools right" role="toolbar" aria-label="View">
        <Button text="−" name="Zoom out" onClick={() => flow.zoomOut()} />
        <Button text="+" name="Zoom in" onClick={() => flow.zoomIn()} />
        <Button text="Fit" onClick={fit} />
        <Button text="Arrange" disabled={!editable} title="Forget where nodes were moved" onClick={arrange} />
      </div>
    </>
  );
}

// The nodes of the library, which moves them while they are dragged.
function useNodes(drawn: Scene, boxes: ReadonlyMap<string, Box>) {
  const { selection, select, editable, session } = useEditor();
  const [nodes, setNodes] = useState<BoxNode[]>([]);
  useEffect(() => {
    const chosen = new Set(selection);
    setNodes(drawn.boxes.map((box) => flowNode(box, chosen.has(box.node.path), editable)));
  }, [drawn, selection, editable]);
  const changeNodes = (changes: NodeChange<BoxNode>[]) => {
    setNodes((before) => applyNodeChanges(changes, before));
    const moved: Record<string, [number, number]> = {};
    for (const each of changes) {
      if (each.type !== "position" || each.dragging || !each.position) continue;
      const [dx, dy] = boxes.get(each.id)?.shift ?? [0, 0];
      moved[each.id] = [Math.round(each.position.x - dx), Math.round(each.position.y - dy)];
    }
    if (Object.keys(moved).length && editable) session.move(moved);
    if (changes.some((each) => each.type === "select")) select([...selected(selection, changes)]);
  };
  return { nodes, changeNodes };
}

function selected(before: Iterable<string>, changes: (NodeChange<BoxNode> | EdgeChange)[]): Set<string> {
  const chosen = new Set(before);
  for (const each of changes) if (each.type === "select") each.selected ? chosen.add(each.id) : chosen.delete(each.id);
  return chosen;
}

// While a wire is dragged: what it is, and why the port under the pointer does not fit.
function Hint({ misfit }: { misfit: (wanted: Connection) => string }) {
  const text = useConnection((connection) => {
    if (!connection.inProgress) return "";
    const { fromNode, fromHandle, toNode, toHandle } = connection;
    if (!toNode || !toHandle || toNode.id === fromNode.id) return "Drop it on an input. Those that do not fit are dim.";
    const [sourceHandle, targetHandle] = [fromHandle.id ?? "", toHandle.id ?? ""];
    const reason = misfit({ source: fromNode.id, sourceHandle, target: toNode.id, targetHandle });
    const to = `${toNode.id}.${targetHandle.slice(3)}`;
    return reason ? `${to}: ${reason}` : `Connect to ${to}`;
  });
  return text ? <p className="hint">{text}</p> : null;
}

// The places of ports are given, since otherwise the library draws all nodes once, and not only the visible ones.
function handles({ inputs, width, inner, node }: Box): NodeHandle[] {
  const places = (side: string, ports: { name: string }[], x: number, y: number): NodeHandle[] => {
    const isIn = side === "in";
    const [type, position] = isIn ? (["target", Position.Left] as const) : (["source", Position.Right] as const);
    const shared = { type, position, x, width: 1, height: ROW };
    return ports.map(({ name }, row) => ({ ...shared, id: `${side}:${name}`, y: y + row * ROW }));
  };
  const heads = [...places("in", [{ name: "" }], 0, 12), ...places("out", [{ name: "" }], width, 12)];
  const sides = [...places("in", inputs, 0, HEADER), ...places("out", node.outputs, width, HEADER)];
  return [...heads, ...sides, ...places("inner", inner ? innerPorts(node) : [], INPUTS, inner)];
}

function flowNode(box: Box, isSelected: boolean, editable: boolean): BoxNode {
  const { node, width, height } = box;
  return {
    id: node.path,
    type: "box",
    position: { x: box.x, y: box.y },
    ...(box.parent && { parentId: box.parent }),
    data: { box },
    width,
    height,
    measured: { width, height },
    handles: handles(box),
    selected: isSelected,
    draggable: editable,
    ariaLabel: `${KINDS[node.kind][1]} ${node.name}${node.lock ? ", locked" : ""}`,
  };
}

type WireEdge = FlowEdge<{ way: Detour }, "wire">;

function WireView({ id, sourceX, sourceY, targetX, targetY, data }: EdgeProps<WireEdge>) {
  return <BaseEdge id={id} path={wirePath([sourceX, sourceY], [targetX, targetY], data?.way)} />;
}

function flowEdge(wire: Wire, boxes: ReadonlyMap<string, Box>, selected: boolean, editable: boolean): WireEdge {
  const { id, source, sourcePort, target, targetPort } = wire;
  const [from, to] = [boxes.get(source), boxes.get(target)];
  const others = [...boxes.values()].filter((box) => box.parent === from?.parent);
  const way = from && to && !wire.inner ? detour(from, to, others) : undefined;
  const isData = targetPort !== "";
  return {
    id,
    type: "wire",
    data: { way },
    source,
    sourceHandle: `${wire.inner ? "inner" : "out"}:${sourcePort}`,
    target,
    targetHandle: `in:${targetPort}`,
    selected,
    selectable: isData && editable,
    focusable: isData && editable,
    className: isData ? hue(wire.type) : "after",
    ariaLabel: isData ? `${source}.${sourcePort} to ${target}.${targetPort}` : `${target} after ${source}`,
  };
}

const contains = (box: Box, { x, y }: { x: number; y: number }) =>
  x >= box.left && x <= box.left + box.width && y >= box.top && y <= box.top + box.height;

function isVisible(box: Box, view: { x: number; y: number; zoom: number }, frame: HTMLElement | null): boolean {
  const [left, top] = [box.left * view.zoom + view.x, box.top * view.zoom + view.y];
  const [right, bottom] = [left + box.width * view.zoom, top + box.height * view.zoom];
  const isInside = right <= (frame?.clientWidth ?? 0) && bottom <= (frame?.clientHeight ?? 0);
  return left >= 0 && top >= BAR && isInside && view.zoom > FAR;
}
