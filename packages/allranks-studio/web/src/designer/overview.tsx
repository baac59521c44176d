// A large graph from far away, drawn on one bitmap: boxes without ports, straight wires.
import { useViewport } from "@xyflow/react";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { useEditor } from "./editor";
import type { Box, Wire } from "./scene";

const COLORS = [
  "--paper",
  "--edge",
  "--ink",
  "--link",
  "--bad",
  "--warn",
  "--done",
  "--run",
  "--soft",
  "--wash",
] as const;
type Colors = Record<(typeof COLORS)[number], string>;
const OF_STATUS: Record<string, (typeof COLORS)[number]> = {
  Failed: "--bad",
  Running: "--run",
  Preparing: "--run",
  Completed: "--done",
  Canceled: "--warn",
  Interrupted: "--warn",
};

export function Overview({ boxes, wires }: { boxes: Box[]; wires: Wire[] }) {
  const { x, y, zoom } = useViewport();
  const { selection, run, document } = useEditor();
  const element = useRef<HTMLCanvasElement>(null);
  const size = useSize(element);
  const colors = useColors();
  const places = useMemo(() => new Map(boxes.map((box) => [box.node.path, box])), [boxes]);
  const failing = useMemo(() => new Set(document.findings.map((each) => each.node)), [document.findings]);
  useLayoutEffect(() => {
    const context = element.current?.getContext("2d");
    if (!context) return;
    const scale = devicePixelRatio;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, size[0], size[1]);
    context.setTransform(zoom * scale, 0, 0, zoom * scale, x * scale, y * scale);
    context.lineWidth = 1 / zoom;
    context.strokeStyle = colors["--edge"];
    context.globalAlpha = 0.6;
    context.beginPath();
    for (const wire of wires) {
      const [source, target] = [places.get(wire.source), places.get(wire.target)];
      if (!source || !target) continue;
      context.moveTo(wire.inner ? source.x : source.x + source.width, source.y + source.height / 2);
      context.lineTo(target.x, target.y + target.height / 2);
    }
    context.stroke();
    context.globalAlpha = 1;
    const chosen = new Set(selection);
    context.font = "600 26px sans-serif";
    const [left, top, right, bottom] = [-x / zoom, -y / zoom, (size[0] - x) / zoom, (size[1] - y) / zoom];
    for (const box of boxes) {
      if (box.x > right || box.y > bottom || box.x + box.width < left || box.y + box.height < top) continue;
      const status = OF_STATUS[run?.states.get(box.node.path)?.status ?? ""];
      context.fillStyle = colors[box.open ? "--wash" : "--paper"];
      context.strokeStyle = colors[failing.has(box.node.path) ? "--bad" : (status ?? "--edge")];
      context.lineWidth = (status || failing.has(box.node.path) ? 2 : 1) / zoom;
      if (chosen.has(box.node.path)) {
        context.strokeStyle = colors["--link"];
        context.lineWidth = 3 / zoom;
      }
      context.fillRect(box.x, box.y, box.width, box.height);
      context.strokeRect(box.x, box.y, box.width, box.height);
      if (zoom < 0.2 || box.open) continue;
      context.fillStyle = colors["--ink"];
      context.fillText(box.node.name, box.x + 10, box.y + box.height / 2 + 9, box.width - 20);
    }
  }, [boxes, wires, places, failing, x, y, zoom, size, colors, selection, run]);
  return (
    <canvas
      ref={element}
      className="overview"
      width={size[0] * devicePixelRatio}
      height={size[1] * devicePixelRatio}
      role="img"
      aria-label={`${boxes.length} nodes from far away. The list of nodes on the left has them by name.`}
    />
  );
}

function useSize(element: { current: HTMLElement | null }): [number, number] {
  const [size, setSize] = useState<[number, number]>([0, 0]);
  useLayoutEffect(() => {
    const around = element.current?.parentElement;
    if (!around) return;
    const measure = () => setSize([around.clientWidth, around.clientHeight]);
    const observer = new ResizeObserver(measure);
    observer.observe(around);
    measure();
    return () => observer.disconnect();
  }, [element]);
  return size;
}

function useColors(): Colors {
  const [colors, setColors] = useState(readColors);
  useEffect(() => {
    const mode = matchMedia("(prefers-color-scheme: dark)");
    const read = () => setColors(readColors());
    mode.addEventListener("change", read);
    return () => mode.removeEventListener("change", read);
  }, []);
  return colors;
}

function readColors(): Colors {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(COLORS.map((name) => [name, style.getPropertyValue(name)])) as Colors;
}
