// The border between the canvas and the code, which can be moved.
import { type KeyboardEvent, type PointerEvent, useEffect } from "react";
import { createSavedStore, useStore } from "../store";

const share = createSavedStore("designer.share", 36); // percent of the code

export function Split({ side }: { side: string }) {
  const percent = useStore(share);
  const set = (value: number) => share.set(Math.min(Math.max(Math.round(value), 12), 80));
  useEffect(() => {
    document.querySelector<HTMLElement>(".middle")?.style.setProperty("--code", `${percent}%`);
  }, [percent]);
  const move = (event: PointerEvent<HTMLElement>) => {
    const frame = event.currentTarget.parentElement?.getBoundingClientRect();
    if (!event.buttons || !frame) return;
    const below = ((frame.bottom - event.clientY) / frame.height) * 100;
    set(side === "below" ? below : ((frame.right - event.clientX) / frame.width) * 100);
  };
  const press = (event: KeyboardEvent) => {
    if (event.key === "ArrowUp" || event.key === "ArrowLeft") set(percent + 4);
    if (event.key === "ArrowDown" || event.key === "ArrowRight") set(percent - 4);
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: an hr cannot be moved
    <div
      role="separator"
      className="split"
      aria-label="Border between canvas and code"
      aria-orientation={side === "below" ? "horizontal" : "vertical"}
      aria-valuenow={percent}
      aria-valuemin={12}
      aria-valuemax={80}
      tabIndex={0}
      onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
      onPointerMove={move}
      onKeyDown={press}
    />
  );
}
