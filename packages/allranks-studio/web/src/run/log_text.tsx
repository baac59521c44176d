// The text of a log of any size. Some parts around what is in sight are held; others are read when they are scrolled to.
import { type KeyboardEvent, memo, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import type { LogPart } from "../api";
import { useEvents } from "../events";
import { bytes } from "../format";
import { harmless, Problem } from "../parts";
import { get } from "../server";

const BYTES = 96 * 1024; // of a part
const MOST = 6; // parts that are held
const NEAR = 1500; // pixels from an end at which the next part is read

interface Properties {
  source: { folder: string; run: string; step: string; rank: number };
  offset: number | null; // of the line to show; null: follow the end
  find: string; // text to mark
  isWrapped: boolean;
}

interface Held {
  parts: LogPart[]; // adjacent
  size: number; // of the log
}

export function LogText({ source, offset, find, isWrapped }: Properties) {
  const [held, setHeld] = useState<Held | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [place, setPlace] = useState(0);
  const [isFollowing, setIsFollowing] = useState(offset === null);
  const element = useRef<HTMLDivElement>(null);
  const state = useRef({ held, isFollowing, request: 0, isBusy: false, missed: false, target: null as number | null });
  const anchor = useRef<{ part: number; top: number } | null>(null);
  const { folder, run, step, rank } = source;

  const update = useCallback((next: Held) => {
    const scroller = element.current;
    // The line in sight stays where it is, whatever is added or removed above it.
    const parts = [...(scroller?.querySelectorAll<HTMLElement>("[data-part]") ?? [])];
    const visible = parts.find(
      (each) =>
        each.offsetTop + each.offsetHeight > (scroller?.scrollTop ?? 0) &&
        next.parts.some((part) => String(part.offset) === each.dataset.part),
    );
    anchor.current =
      visible && scroller ? { part: Number(visible.dataset.part), top: visible.offsetTop - scroller.scrollTop } : null;
    state.current.held = next;
    setHeld(next);
  }, []);

  const read = useCallback(
    (from: number, length: number) =>
      get<LogPart>("/api/log", { folder, run, step, rank, offset: from, bytes: length }),
    [folder, run, step, rank],
  );

  // Show the log from an offset; a negative one counts from the end.
  const jump = useCallback(
    async (to: number, isTarget: boolean) => {
      const request = ++state.current.request;
      state.current.isBusy = true;
      try {
        const part = await read(to, BYTES);
        if (request !== state.current.request) return;
        state.current.target = isTarget ? part.offset : null;
        setError(null);
        update({ parts: [part], size: part.size });
      } catch (problem) {
        if (request === state.current.request) setError(problem);
      } finally {
        if (request === state.current.request) state.current.isBusy = false;
      }
    },
    [read, update],
  );

  const extend = useCallback(
    async (direction: "before" | "after") => {
      const { held: before, isBusy } = state.current;
      const [first, last] = [before?.parts[0], before?.parts.at(-1)];
      if (!before || !first || !last) return;
      if (isBusy) {
        state.current.missed ||= direction === "after";
        return;
      }
      const request = ++state.current.request;
      state.current.isBusy = true;
      try {
        const from = direction === "after" ? last.end : Math.max(0, first.offset - BYTES);
        const part = await read(from, direction === "after" ? BYTES : first.offset - from);
        if (request !== state.current.request) return;
        if (part.size < last.end) {
          state.current.isBusy = false;
          return jump(-BYTES, false); // the log was written anew
        }
        const grown = part.end > part.offset ? joined(before.parts, part, direction) : before.parts;
        if (grown !== before.parts || part.size !== before.size) update({ parts: grown, size: part.size });
      } catch (problem) {
        if (request === state.current.request) setError(problem);
      } finally {
        if (request === state.current.request) state.current.isBusy = false;
      }
      if (state.current.missed) {
        state.current.missed = false;
        await extend("after");
      }
    },
    [read, update, jump],
  );

  const look = useCallback(() => {
    const scroller = element.current;
    const now = state.current.held;
    const [first, last] = [now?.parts[0], now?.parts.at(-1)];
    if (!scroller || !now || !first || !last) return;
    const { scrollTop, scrollHeight, clientHeight } = scroller;
    const below = scrollHeight - scrollTop - clientHeight;
    const isAtEnd = below < 24 && last.end >= now.size;
    state.current.isFollowing = isAtEnd;
    setIsFollowing(isAtEnd);
    const visible = [...scroller.querySelectorAll<HTMLElement>("[data-part]")].findLast(
      (each) => each.offsetTop <= scrollTop + 1,
    );
    const part = now.parts.find((each) => String(each.offset) === visible?.dataset.part) ?? first;
    const share = visible?.offsetHeight ? (scrollTop - visible.offsetTop) / visible.offsetHeight : 0;
    setPlace(isAtEnd ? now.size : Math.round(part.offset + Math.max(0, share) * (part.end - part.offset)));
    if (scrollTop < NEAR && first.offset > 0) void extend("before");
    else if (below < NEAR && last.end < now.size) void extend("after");
  }, [extend]);

  useEffect(() => {
    if (offset === null) {
      state.current.isFollowing = true;
      void jump(-BYTES, false);
    } else {
      state.current.isFollowing = false;
      void jump(offset, true);
    }
  }, [offset, jump]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: after each change of the text
  useLayoutEffect(() => {
    const scroller = element.current;
    if (!scroller) return;
    const part = (name: number) => scroller.querySelector<HTMLElement>(`[data-part="${name}"]`);
    const { target } = state.current;
    const shown = target === null ? null : part(target);
    const kept = anchor.current ? part(anchor.current.part) : null;
    if (shown) {
      scroller.scrollTop = shown.offsetTop - scroller.clientHeight / 3;
      if (shown.offsetTop > scroller.clientHeight / 3 || held?.parts[0]?.offset === 0) state.current.target = null;
    } else if (state.current.isFollowing) scroller.scrollTop = scroller.scrollHeight;
    else if (kept && anchor.current) scroller.scrollTop = kept.offsetTop - anchor.current.top;
    look();
  }, [held, isWrapped, look]);

  useEvents((event) => {
    if (!("run" in event) || event.run !== run || !("rank" in event) || event.rank !== rank || event.step !== step)
      return;
    const now = state.current.held;
    const isComplete = now !== null && (now.parts.at(-1)?.end ?? 0) >= now.size;
    if (event.kind === "log" && now && !isComplete && !state.current.isFollowing) update({ ...now, size: event.size });
    else void extend("after");
  });

  const press = (event: KeyboardEvent) => {
    if (event.key === "Home") void start();
    else if (event.key === "End") void follow();
    else return;
    event.preventDefault();
  };
  const start = async () => {
    state.current.isFollowing = false;
    await jump(0, false);
    if (element.current) element.current.scrollTop = 0;
  };
  const follow = () => {
    state.current.isFollowing = true;
    return jump(-BYTES, false);
  };
  const slide = (to: number) => {
    state.current.isFollowing = false;
    setPlace(to);
    void jump(to, false).then(() => element.current?.scrollTo({ top: 0 }));
  };

  const size = held?.size ?? 0;
  const isPartial = held !== null && ((held.parts[0]?.offset ?? 0) > 0 || (held.parts.at(-1)?.end ?? 0) < size);
  return (
    <div className="log">
      {error !== null && <Problem error={error} />}
      <section
        ref={element}
        className={isWrapped ? "text wrap" : "text"}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled by keyboard
        tabIndex={0}
        aria-label={`Log of rank ${rank} of ${step}`}
        onScroll={look}
        onKeyDown={press}
      >
        {held?.parts.map((part) => (
          <Part key={part.offset} part={part} find={find} isTarget={part.offset === offset} />
        ))}
        {held && size === 0 && <p className="soft">Nothing has been written.</p>}
      </section>
      <div className="position">
        <button type="button" className="plain" onClick={() => void start()}>
          Start
        </button>
        <input
          type="range"
          aria-label="Position in the log"
          aria-valuetext={`${bytes(place)} of ${bytes(size)}`}
          min="0"
          max={Math.max(size, 1)}
          value={place}
          hidden={!isPartial}
          onChange={(event) => slide(Number(event.target.value))}
        />
        <button type="button" className="plain" aria-pressed={isFollowing} onClick={() => void follow()}>
          End
        </button>
        <span className="space" />
        <span className="soft">{isPartial && !isFollowing ? `${bytes(place)} of ${bytes(size)}` : bytes(size)}</span>
      </div>
    </div>
  );
}

// Return adjacent parts with another one, without the farthest ones if they become too many. Lines that are followed one
// by one become one part.
function joined(parts: LogPart[], part: LogPart, direction: "before" | "after"): LogPart[] {
  if (direction === "before") return [part, ...parts].slice(0, MOST);
  const last = parts.at(-1);
  if (!last || part.end - last.offset > BYTES) return [...parts, part].slice(-MOST);
  return [...parts.slice(0, -1), { ...part, offset: last.offset, text: last.text + part.text }];
}

const Part = memo(function Part({ part, find, isTarget }: { part: LogPart; find: string; isTarget: boolean }) {
  const text = harmless(part.text);
  const end = isTarget ? text.indexOf("\n") + 1 || text.length : 0;
  return (
    <pre data-part={part.offset}>
      {isTarget && <span className="hit">{marked(text.slice(0, end), find)}</span>}
      {marked(text.slice(end), find)}
    </pre>
  );
});

function marked(text: string, find: string) {
  if (!find) return text;
  const pieces = text.split(new RegExp(`(${find.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")})`, "i"));
  // biome-ignore lint/suspicious/noArrayIndexKey: the pieces of one text
  return pieces.map((piece, index) => (index % 2 ? <mark key={index}>{piece}</mark> : piece));
}
