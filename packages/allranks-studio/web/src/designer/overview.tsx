// A large graph from far away, drawn on one bitmap: boxes without ports, straight wires.
import { useStore, useViewport } from "@xyflow/react";
import { useLayoutEffect, useMemo, useRef } from "react";
import { useEditor } from "./editor";
import { useMedia } from "./media";
import type { Box, Wire } from "./scene";

const OF_STATUS: Record<string, string> = {
  Failed: "--bad",
  Running: "--run",
  Preparing: "--run",
  Completed: "--done",
};

export function Overview({ boxes, wires }: { boxes: Box[]; wires: Wire[] }) {
  const { x, y, zoom } = useViewport();
  const { selection, run, document } = useEditor();
  const element = useRef<HTMLCanvasElement>(null);
  const width = useStore((state) => state.width);
  const height = useStore((state) => state.height);
  const isDark = useMedia("(prefers-color-scheme: dark)");
  const places = useMemo(() => new Map(boxes.map((box) => [box.node.path, box])), [boxes]);
  const failing = useMemo(() => new Set(document.findings.map((each) => each.node)), [document.findings]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the colours are those of the mode
  useLayoutEffect(() => {
    const context = element.current?.getContext("2d");
    if (!context) return;
    const style = getComputedStyle(element.current ?? window.document.body);
    const color = (name: string) => style.getPropertyValue(name);
    const scale = devicePixelRatio;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    context.setTransform(zoom * scale, 0, 0, zoom * scale, x * scale, y * scale);
    context.lineWidth = 1 / zoom;
    context.strokeStyle = color("--edge");
    context.globalAlpha = 0.6;
    context.beginPath();
    for (const wire of wires) {
      const [source, target] = [places.get(wire.source), places.get(wire.target)];
      if (!source || !target) continue;
      context.moveTo(wire.inner ? source.left : source.left + source.width, source.top + source.height / 2);
      context.lineTo(target.left, target.top + target.height / 2);
    }
    context.stroke();
    context.globalAlpha = 1;
    const chosen = new Set(selection);
    context.font = "600 26px sans-serif";
    const [left, top, right, bottom] = [-x / zoom, -y / zoom, (width - x) / zoom, (height - y) / zoom];
    for (const box of boxes) {
      if (box.left > right || box.top > bottom || box.left + box.width < left || box.top + box.height < top) continue;
      const status = OF_STATUS[run?.states.get(box.node.path)?.status ?? ""];
      context.fillStyle = color(box.open ? "--wash" : "--paper");
      context.strokeStyle = color(failing.has(box.node.path) ? "--bad" : (status ?? "--edge"));
      context.lineWidth = (status || failing.has(box.node.path) ? 2 : 1) / zoom;
      if (chosen.has(box.node.path)) {
        context.strokeStyle = color("--link");
        context.lineWidth = 3 / zoom;
      }
      context.fillRect(box.left, box.top, box.width, box.height);
      context.strokeRect(box.left, box.top, box.width, box.height);
      if (zoom < 0.2 || box.open) continue;
      context.fillStyle = color("--ink");
      context.fillText(box.node.name, box.left + 10, box.top + box.height / 2 + 9, box.width - 20);
    }
  }, [boxes, wires, places, failing, x, y, zoom, width, height, isDark, selection, run]);
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
