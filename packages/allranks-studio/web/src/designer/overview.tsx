// A large graph from far away, drawn on one bitmap: boxes without ports, straight wires.
import { useStore, useViewport } from "@xyflow/react";
import { useLayoutEffect, useMemo, useRef } from "react";
import { useMedia } from "../parts";
import { useEditor } from "./editor";
import type { Box, Wire } from "./scene";

const OF_STATUS: Record<string, string> = { Failed: "--bad", Running: "--run", Completed: "--done" };
const READABLE = 0.2; // zoom from which names are drawn

export function Overview({ boxes, wires }: { boxes: Box[]; wires: Wire[] }) {
  const { x, y, zoom } = useViewport();
  const { selection, run, document } = useEditor();
  const element = useRef<HTMLCanvasElement>(null);
  const width = useStore((state) => state.width);
  const height = useStore((state) => state.height);
  const isDark = useMedia("(prefers-color-scheme: dark)");
  const paths = useMemo(() => outlines(boxes, wires), [boxes, wires]);
  const failing = useMemo(() => new Set(document.findings.map((each) => each.node)), [document.findings]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the colours are those of the mode
  useLayoutEffect(() => {
    const context = element.current?.getContext("2d");
    if (!context) return;
    const style = getComputedStyle(context.canvas);
    const color = (name: string) => style.getPropertyValue(name);
    const scale = devicePixelRatio;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    context.setTransform(zoom * scale, 0, 0, zoom * scale, x * scale, y * scale);
    context.lineWidth = 1 / zoom;
    context.strokeStyle = color("--edge");
    context.fillStyle = color("--paper");
    context.stroke(paths.wires);
    context.fill(paths.boxes);
    context.stroke(paths.boxes);
    const chosen = new Set(selection);
    context.fillStyle = color("--ink");
    context.font = "600 26px sans-serif";
    for (const { node, left, top, width: wide, height: high } of boxes) {
      const status = failing.has(node.path) ? "Failed" : run?.states.get(node.path)?.status;
      const special = chosen.has(node.path) ? "--link" : OF_STATUS[status ?? ""];
      context.lineWidth = 3 / zoom;
      if (special) context.strokeStyle = color(special);
      if (special) context.strokeRect(left, top, wide, high);
      const isVisible = left < (width - x) / zoom && top < (height - y) / zoom && left + wide > -x / zoom;
      if (zoom > READABLE && isVisible) context.fillText(node.name, left + 10, top + high / 2 + 9, wide - 20);
    }
  }, [boxes, paths, failing, x, y, zoom, width, height, isDark, selection, run]);
  return (
    <canvas
      ref={element}
      className="overview"
      width={width * devicePixelRatio}
      height={height * devicePixelRatio}
      role="img"
      aria-label={`${boxes.length} nodes from far away. The list of nodes on the left has them by name.`}
    />
  );
}

// Drawing a path of all boxes takes half the time of drawing each.
function outlines(boxes: Box[], wires: Wire[]): { boxes: Path2D; wires: Path2D } {
  const places = new Map(boxes.map((box) => [box.node.path, box]));
  const paths = { boxes: new Path2D(), wires: new Path2D() };
  for (const box of boxes) paths.boxes.rect(box.left, box.top, box.width, box.height);
  for (const wire of wires) {
    const [source, target] = [places.get(wire.source), places.get(wire.target)];
    if (!source || !target) continue;
    paths.wires.moveTo(source.left + (wire.inner ? 0 : source.width), source.top + source.height / 2);
    paths.wires.lineTo(target.left, target.top + target.height / 2);
  }
  return paths;
}
