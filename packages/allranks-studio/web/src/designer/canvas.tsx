// The graph as boxes and wires. Far away it is drawn by overview.tsx, since a thousand nodes are too many for the DOM.
import {
  applyNodeChanges,
  Background,
  type Connection,
  type Edge as FlowEdge,
  type NodeChange,
  ReactFlow,
  useConnection,
  useStore as useFlowStore,
  useReactFlow,
} from "@xyflow/react";
import { type DragEvent, type KeyboardEvent, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useEditor } from "./editor";
import { type BoxNode, BoxView, connectionMisfit, KINDS } from "./node";
import { Overview } from "./overview";
import { PALETTE_DATA } from "./palette";
import { hue, nodeAt } from "./ports";
import { type Box, type Scene, scene, type Wire } from "./scene";
import { CanvasTools, useActions } from "./tools";

const TYPES = { box: BoxView };
const FAR = 0.4; // below this zoom, a large graph is drawn by the overview
const LARGE = 60; // nodes

export function Canvas() {
  const editor = useEditor();
  const { document, graph, open, selection } = editor;
  const flow = useReactFlow<BoxNode>();
  const drawn = useMemo(
    (): Scene => (graph ? scene(document, graph, open) : { boxes: [], wires: [] }),
    [document, graph, open],
  );
  const boxes = useMemo(() => new Map(drawn.boxes.map((box) => [box.node.path, box])), [drawn]);
  const isFar = useFlowStore((state) => state.transform[2] < FAR) && drawn.boxes.length > LARGE;
  const [wires, setWires] = useState<string[]>([]); // those that are selected
  const actions = useActions();
  const frame = useRef<HTMLElement>(null);

  const [nodes, setNodes] = useState<BoxNode[]>([]);
  useEffect(() => {
    const chosen = new Set(selection);
    setNodes((before) => {
      const known = new Map(before.map((node) => [node.id, node]));
      return drawn.boxes.map((box) =>
        flowNode(box, chosen.has(box.node.path), known.get(box.node.path), editor.editable),
      );
    });
  }, [drawn, selection, editor.editable]);
  const edges = useMemo(
    () => drawn.wires.map((wire) => flowEdge(wire, wires, editor.editable)),
    [drawn, wires, editor.editable],
  );

  const change = (changes: NodeChange<BoxNode>[]) => {
    setNodes((before) => applyNodeChanges(changes, before));
    const chosen = new Set(selection);
    const moved: Record<string, [number, number]> = {};
    for (const each of changes) {
      if (each.type === "select") each.selected ? chosen.add(each.id) : chosen.delete(each.id);
      const box = each.type === "position" && !each.dragging && each.position ? boxes.get(each.id) : undefined;
      if (each.type !== "position" || !each.position || !box) continue;
      moved[each.id] = [Math.round(each.position.x - box.shift[0]), Math.round(each.position.y - box.shift[1])];
    }
    if (changes.some((each) => each.type === "select")) editor.select([...chosen]);
    if (Object.keys(moved).length && editor.editable) editor.session.move(moved);
  };

  const misfit = useCallback(
    (wanted: Connection | FlowEdge) => {
      const box = boxes.get(wanted.target);
      const input = box?.inputs.find((port) => `in:${port.name}` === wanted.targetHandle);
      if (!box || !input) return "it is not an input";
      return connectionMisfit(nodeAt(editor.root, wanted.source), wanted.sourceHandle ?? "", box, input);
    },
    [boxes, editor.root],
  );
  const connect = ({ source, sourceHandle, target, targetHandle }: Connection) => {
    const [from, to] = [nodeAt(editor.root, source), nodeAt(editor.root, target)];
    const port = sourceHandle?.slice(sourceHandle.indexOf(":") + 1) ?? "";
    if (!from || !to || !targetHandle) return;
    const isInner = sourceHandle?.startsWith("inner:");
    editor.set(
      to,
      targetHandle.slice(3),
      isInner ? { kind: "input", name: port } : { kind: "output", node: from.name, port },
    );
  };

  const drop = (event: DragEvent) => {
    event.preventDefault();
    const item = editor.palette.find((each) => each.component === event.dataTransfer.getData(PALETTE_DATA));
    if (!item) return;
    const at = flow.screenToFlowPosition({ x: event.clientX - 40, y: event.clientY - 16 });
    const [around, x, y] = graphUnder(drawn, boxes, at.x, at.y);
    editor.add(item, around ?? editor.view, [Math.round(x), Math.round(y)]);
  };

  const press = (event: KeyboardEvent) => {
    if ((event.target as HTMLElement).closest("input, select, textarea")) return;
    const isControl = event.ctrlKey || event.metaKey;
    const keys: Record<string, () => void> = {
      delete: () => {
        const chosen = drawn.wires.filter((wire) => wires.includes(wire.id) && wire.targetPort);
        editor.remove(
          selection,
          chosen.map((wire) => ({ node: wire.target, input: wire.targetPort })),
        );
        setWires([]);
      },
      f2: actions.rename,
      "ctrl+d": actions.duplicate,
      "ctrl+a": () => editor.select(drawn.boxes.filter((box) => !box.parent).map((box) => box.node.path)),
      f: () => fit(),
    };
    const name = event.key === "Backspace" ? "delete" : event.key.toLowerCase();
    const act = keys[isControl ? `ctrl+${name}` : name];
    if (!act) return;
    event.preventDefault();
    act();
  };

  const fit = useCallback(
    (chosen?: Box) => {
      const around = chosen
        ? [absolute(chosen, boxes)]
        : drawn.boxes.filter((box) => !box.parent).map((box) => absolute(box, boxes));
      if (!around.length) return;
      const [left, top] = [Math.min(...around.map((each) => each.x)), Math.min(...around.map((each) => each.y))];
      const right = Math.max(...around.map((each) => each.x + each.width));
      const bottom = Math.max(...around.map((each) => each.y + each.height));
      const size = frame.current?.getBoundingClientRect();
      if (!size) return;
      const zoom = chosen
        ? Math.max(flow.getZoom(), 0.7)
        : Math.min((size.width - 60) / (right - left), (size.height - 90) / (bottom - top), 1);
      const shown = Math.max(zoom, 0.02);
      const x = size.width / 2 - ((left + right) / 2) * shown;
      const y = (size.height + 30) / 2 - ((top + bottom) / 2) * shown;
      void flow.setViewport({ x, y, zoom: shown });
    },
    [drawn, boxes, flow],
  );
  // biome-ignore lint/correctness/useExhaustiveDependencies: once for each graph, not after each change of it
  useEffect(() => fit(), [editor.view, document.path, graph === null]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: once for each request
  useEffect(() => {
    const box = editor.reveal && boxes.get(editor.reveal.path);
    if (box && !isVisible(absolute(box, boxes), flow.getViewport(), frame.current)) fit(box);
  }, [editor.reveal]);

  return (
    <section
      ref={frame}
      className="canvas"
      aria-label="Canvas"
      onKeyDown={press}
      onDrop={drop}
      onDragOver={(event) => event.preventDefault()}
    >
      <ReactFlow<BoxNode>
        nodes={isFar ? [] : nodes}
        edges={isFar ? [] : edges}
        nodeTypes={TYPES}
        onNodesChange={change}
        onEdgesChange={(changes) => {
          const chosen = new Set(wires);
          for (const each of changes)
            if (each.type === "select") each.selected ? chosen.add(each.id) : chosen.delete(each.id);
          setWires([...chosen]);
        }}
        onConnect={connect}
        isValidConnection={(wanted) => !misfit(wanted)}
        onNodeDoubleClick={(_, node) => node.data.box.node.graph && editor.enter(node.id)}
        onPaneClick={(event) => {
          const at = flow.screenToFlowPosition({ x: event.clientX, y: event.clientY });
          const box = isFar
            ? drawn.boxes.filter((each) => contains(absolute(each, boxes), at.x, at.y)).at(-1)
            : undefined;
          editor.select(box ? [box.node.path] : []);
        }}
        onlyRenderVisibleElements
        deleteKeyCode={null}
        multiSelectionKeyCode={["Control", "Meta", "Shift"]}
        connectOnClick={false}
        zoomOnDoubleClick={false}
        nodesConnectable={editor.editable}
        minZoom={0.02}
        maxZoom={2}
        proOptions={{ hideAttribution: true }}
        ariaLabelConfig={{
          "node.a11yDescription.default": "Enter selects, arrow keys move, Delete deletes, F2 renames.",
        }}
      >
        <Background gap={20} size={1} />
        {isFar && (
          <Overview boxes={drawn.boxes.map((box) => ({ ...box, ...absolute(box, boxes) }))} wires={drawn.wires} />
        )}
        <Hint misfit={misfit} />
      </ReactFlow>
      <CanvasTools fit={fit} />
    </section>
  );
}

// While a wire is dragged: what it is, and why the port under the pointer does not fit.
function Hint({ misfit }: { misfit: (wanted: Connection) => string }) {
  const text = useConnection((connection) => {
    if (!connection.inProgress) return "";
    const { fromNode, fromHandle, toNode, toHandle } = connection;
    if (!toNode || !toHandle || toNode.id === fromNode.id) return "Drop it on an input. Those that do not fit are dim.";
    const reason = misfit({
      source: fromNode.id,
      sourceHandle: fromHandle.id ?? "",
      target: toNode.id,
      targetHandle: toHandle.id ?? "",
    });
    const to = `${toNode.id}.${toHandle.id?.slice(3)}`;
    return reason ? `${to}: ${reason}` : `Connect to ${to}`;
  });
  return text ? <p className="hint">{text}</p> : null;
}

function flowNode(box: Box, selected: boolean, before: BoxNode | undefined, editable: boolean): BoxNode {
  const { node, width, height } = box;
  return {
    ...(before?.measured && { measured: { width, height } }),
    id: node.path,
    type: "box",
    position: { x: box.x, y: box.y },
    ...(box.parent && { parentId: box.parent }),
    data: { box },
    width,
    height,
    selected,
    draggable: editable,
    ariaLabel: `${KINDS[node.kind][1]} ${node.name}${node.lock ? ", locked" : ""}`,
    ...(box.open && { dragHandle: "header" }),
  };
}

function flowEdge(wire: Wire, selected: string[], editable: boolean): FlowEdge {
  const isData = wire.targetPort !== "";
  return {
    id: wire.id,
    source: wire.source,
    sourceHandle: `${wire.inner ? "inner" : "out"}:${wire.sourcePort}`,
    target: wire.target,
    targetHandle: `in:${wire.targetPort}`,
    selected: selected.includes(wire.id),
    selectable: isData && editable,
    focusable: isData && editable,
    className: isData ? hue(wire.type) : "after",
    ariaLabel: isData
      ? `${wire.source}.${wire.sourcePort} to ${wire.target}.${wire.targetPort}`
      : `${wire.target} after ${wire.source}`,
  };
}

interface Area {
  x: number;
  y: number;
  width: number;
  height: number;
}

function absolute(box: Box, boxes: ReadonlyMap<string, Box>): Area {
  const parent = boxes.get(box.parent);
  const around = parent ? absolute(parent, boxes) : { x: 0, y: 0 };
  return { x: box.x + around.x, y: box.y + around.y, width: box.width, height: box.height };
}

const contains = (area: Area, x: number, y: number) =>
  x >= area.x && x <= area.x + area.width && y >= area.y && y <= area.y + area.height;

// Return the graph of the innermost open box at a place, and the place in it; undefined for that which is shown.
function graphUnder(
  drawn: Scene,
  boxes: ReadonlyMap<string, Box>,
  x: number,
  y: number,
): [string | undefined, number, number] {
  const box = drawn.boxes.filter((each) => each.open && contains(absolute(each, boxes), x, y)).at(-1);
  if (!box) return [undefined, x, y];
  const child = drawn.boxes.find((each) => each.parent === box.node.path);
  const area = absolute(box, boxes);
  return [box.node.path, x - area.x - (child?.shift[0] ?? 0), y - area.y - (child?.shift[1] ?? 0)];
}

function isVisible(area: Area, view: { x: number; y: number; zoom: number }, frame: HTMLElement | null): boolean {
  const [left, top] = [area.x * view.zoom + view.x, area.y * view.zoom + view.y];
  const [right, bottom] = [left + area.width * view.zoom, top + area.height * view.zoom];
  return (
    left >= 0 &&
    top >= 0 &&
    right <= (frame?.clientWidth ?? 0) &&
    bottom <= (frame?.clientHeight ?? 0) &&
    view.zoom > FAR
  );
}
