// The text of a log of any size. Some parts around what is in sight are held; others are read when they are scrolled to.
import {
  type KeyboardEvent,
  memo,
  type RefObject,
  useCallback,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
} from "react";
import type { LogPart } from "../api";
import { Button } from "../controls";
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
  size: number; // of the log, as far as it is known
}

const elementsOf = (log: RefObject<HTMLElement | null>) => [
  ...(log.current?.querySelectorAll<HTMLElement>("[data-part]") ?? []),
];

export function LogText({ source, offset, find, isWrapped }: Properties) {
  const [held, setHeld] = useState<Held>({ parts: [], size: 0 });
  const [error, setError] = useState<unknown>(null);
  const [place, setPlace] = useState(0);
  const [isFollowing, setIsFollowing] = useState(offset === null);
  const element = useRef<HTMLElement>(null);
  const now = useRef({ held, isFollowing, request: 0, isBusy: false, target: null as number | null });
  const anchor = useRef<{ part: number; top: number } | null>(null);
  const { folder, run, step, rank } = source;

  const change = useCallback((next: Held) => {
    // The line in sight stays where it is, whatever is added or removed above it.
    const top = element.current?.scrollTop ?? 0;
    const isKept = (each: HTMLElement) => next.parts.some((part) => String(part.offset) === each.dataset.part);
    const kept = elementsOf(element).find((each) => each.offsetTop + each.offsetHeight > top && isKept(each));
    anchor.current = kept ? { part: Number(kept.dataset.part), top: kept.offsetTop - top } : null;
    now.current.held = next;
    setHeld(next);
  }, []);

  // Read a window and use it, unless another one has been asked for meanwhile.
  const read = useCallback(
    async (from: number, length: number, use: (part: LogPart) => LogPart[]) => {
      now.current.request += 1;
      const { request } = now.current;
      now.current.isBusy = true;
      const query = { folder, run, step, rank, offset: from, bytes: length };
      const part = await get<LogPart>("/api/log", query).catch((problem: Error) => problem);
      if (request !== now.current.request) return;
      now.current.isBusy = false;
      setError(part instanceof Error ? part : null);
      if (part instanceof Error) return;
      const before = now.current.held;
      const parts = use(part);
      // Nothing is new if the last line has no end yet.
      if (parts !== before.parts || part.size > before.size) change({ parts, size: part.size });
    },
    [folder, run, step, rank, change],
  );

  // Show the log from an offset; a negative one counts from the end.
  const jump = useCallback(
    (to: number, isTarget = false) => {
      now.current.isFollowing = to < 0;
      return read(to, BYTES, (part) => {
        now.current.target = isTarget ? part.offset : null;
        return [part];
      });
    },
    [read],
  );

  const extend = useCallback(
    (direction: "before" | "after") => {
      const { parts } = now.current.held;
      const [first, last] = [parts[0], parts.at(-1)];
      if (!first || !last || now.current.isBusy) return;
      const from = direction === "after" ? last.end : Math.max(0, first.offset - BYTES);
      void read(from, direction === "after" ? BYTES : first.offset - from, (part) =>
        part.end === part.offset ? parts : joined(parts, part, direction),
      );
    },
    [read],
  );

  // Find out what is in sight, and read what is next to it.
  const look = useCallback(() => {
    const { parts, size } = now.current.held;
    const [first, last] = [parts[0], parts.at(-1)];
    const scroller = element.current;
    if (!scroller || !first || !last) return;
    const { scrollTop, scrollHeight, clientHeight } = scroller;
    const below = scrollHeight - scrollTop - clientHeight;
    now.current.isFollowing = below < 24 && (last.end >= size || now.current.isFollowing);
    setIsFollowing(now.current.isFollowing);
    const visible = elementsOf(element).findLast((each) => each.offsetTop <= scrollTop + 1);
    const part = parts.find((each) => String(each.offset) === visible?.dataset.part) ?? first;
    const share = visible?.offsetHeight ? Math.max(0, scrollTop - visible.offsetTop) / visible.offsetHeight : 0;
    setPlace(now.current.isFollowing ? size : Math.round(part.offset + share * (part.end - part.offset)));
    if (scrollTop < NEAR && first.offset > 0) extend("before");
    else if (below < NEAR && last.end < size) extend("after");
  }, [extend]);

  useEffect(() => void jump(offset ?? -BYTES, offset !== null), [offset, jump]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: after each change of the text
  useLayoutEffect(() => {
    const scroller = element.current;
    if (!scroller) return;
    const target = elementsOf(element).find((each) => each.dataset.part === String(now.current.target));
    const kept = elementsOf(element).find((each) => each.dataset.part === String(anchor.current?.part));
    if (target) {
      scroller.scrollTop = target.offsetTop - scroller.clientHeight / 3;
      const isSettled = target.offsetTop > scroller.clientHeight / 3 || held.parts[0]?.offset === 0;
      if (isSettled) now.current.target = null;
    } else if (now.current.isFollowing) scroller.scrollTop = scroller.scrollHeight;
    else if (kept && anchor.current) scroller.scrollTop = kept.offsetTop - anchor.current.top;
    look();
  }, [held, isWrapped, look]);

  useEvents((event) => {
    const isOwn = "rank" in event && event.run === run && event.step === step && event.rank === rank;
    if (!isOwn) return;
    if (event.kind === "rank")
      extend("after"); // its last line is complete
    else if (event.size < now.current.held.size)
      void jump(-BYTES); // another attempt writes the log anew
    else change({ ...now.current.held, size: event.size });
  });

  const start = () => jump(0).then(() => element.current?.scrollTo({ top: 0 }));
  const slide = (to: number) => {
    setPlace(to);
    void jump(to).then(() => element.current?.scrollTo({ top: 0 }));
  };
  const press = (event: KeyboardEvent) => {
    if (event.key !== "Home" && event.key !== "End") return;
    event.preventDefault();
    void (event.key === "Home" ? start() : jump(-BYTES));
  };
  const { parts, size } = held;
  const isPartial = (parts[0]?.offset ?? 0) > 0 || (parts.at(-1)?.end ?? size) < size;
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
        {parts.map((part) => (
          <Part key={part.offset} part={part} find={find} isTarget={part.offset === offset} />
        ))}
        {parts.length > 0 && size === 0 && <p className="soft">Nothing has been written.</p>}
      </section>
      <div className="position">
        <Button text="Start" className="plain" onClick={() => void start()} />
        <input
          type="range"
          aria-label="Position in the log"
          aria-valuetext={`${bytes(place)} of ${bytes(size)}`}
          max={Math.max(size, 1)}
          value={place}
          hidden={!isPartial}
          onChange={(event) => slide(Number(event.target.value))}
        />
        <Button text="End" className="plain" aria-pressed={isFollowing} onClick={() => void jump(-BYTES)} />
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
