// Wires from the right side of a box to the left side of another.

const GAP = 12; // between a wire and a box that it passes

export interface Area {
  left: number;
  top: number;
  width: number;
  height: number;
}

// The straight part by which a wire passes boxes.
export type Detour = { left: number; right: number; y: number } | undefined;

// Return how a wire passes the boxes between two others, above or below; undefined if none is in its way.
export function detour(from: Area, to: Area, boxes: Area[]): Detour {
  const [x, width] = [from.left + from.width, to.left - from.left - from.width];
  const [y, height] = [from.top + from.height / 2, to.top + to.height / 2 - from.top - from.height / 2];
  const crossed = boxes.filter((box) => {
    const at = y + (height * (box.left + box.width / 2 - x)) / width;
    const isBetween = box.left > x && box.left + box.width < to.left;
    return isBetween && at > box.top - GAP && at < box.top + box.height + GAP;
  });
  if (!crossed.length) return undefined;
  const left = Math.min(...crossed.map((box) => box.left)) - GAP;
  const right = Math.max(...crossed.map((box) => box.left + box.width)) + GAP;
  const above = Math.min(...crossed.map((box) => box.top)) - GAP;
  const below = Math.max(...crossed.map((box) => box.top + box.height)) + GAP;
  return { left, right, y: y + height / 2 < (above + below) / 2 ? above : below };
}

// Return the path of a wire in SVG.
export function wirePath([x1, y1]: [number, number], [x2, y2]: [number, number], way: Detour): string {
  const curve = (x1: number, y1: number, x2: number, y2: number) => {
    const bend = Math.max((x2 - x1) / 2, 24);
    return `C${x1 + bend},${y1} ${x2 - bend},${y2} ${x2},${y2}`;
  };
  const { left, right, y } = way ?? { left: x2, right: x2, y: y2 };
  const rest = way ? `H${right}${curve(right, y, x2, y2)}` : "";
  return `M${x1},${y1}${curve(x1, y1, left, y)}${rest}`;
}
