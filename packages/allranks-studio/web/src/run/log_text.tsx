// The text of a log of any size. Some parts around what is in sight are held; others are read when they are scrolled to.
import type { KeyboardEvent, RefObject } from "react";
import { memo, useEffect, useLayoutEffect, useReducer, useRef, useState } from "react";
import type { LogPart } from "../api";
import { Button } from "../controls";
import { useEvents } from "../events";
import { bytes } from "../format";
import { harmless, Problem } from "../parts";
import { get } from "../server";

const BYTES = 96 * 1024; // of a part
const MOST = 6; // parts that are held
const NEAR = 1500; // pixels from an end at which the next part is read

interface Source {
  folder: string;
  run: string;
  step: string;
  rank: number;
}

// What is held of a log, and what of it is in sight.
class Held {
  parts: LogPart[] = []; // adjacent
  size = 0; // of the log, as far as it is known
  place = 0; // the offset in sight
  isFollowing = false;
  error: unknown = null;
  private target: number | null = null; // the part to scroll to
  private anchor: { part: number; top: number } | null = null; // the part that stays where it is
  private request = 0;
  private isBusy = false;

  constructor(
    private readonly source: Source,
    private readonly scroller: RefObject<HTMLElement | null>,
    private readonly draw: () => void,
  ) {}

  // Show the log from an offset; a negative one counts from the end, which is followed.
  jump(to: number): void {
    this.isFollowing = to < 0;
    void this.read(to, BYTES, (part) => {
      this.target = to < 0 ? null : part.offset;
      return [part];
    });
  }

  // Read what was written: the log has another size, or its last line is complete.
  grow(size = this.size): void {
    if (size < this.size)
      this.jump(-BYTES); // another attempt writes the log anew
    else if (size > this.size) this.change(this.parts, size);
    else this.extend(true);
  }

  // Scroll to where the text belongs after a change.
  settle(): void {
    const scroller = this.scroller.current;
    if (!scroller) return;
    const target = this.elementOf(this.target);
    const kept = this.elementOf(this.anchor?.part);
    if (target) {
      scroller.scrollTop = target.offsetTop - scroller.clientHeight / 3;
      if (target.offsetTop > scroller.clientHeight / 3 || this.parts[0]?.offset === 0) this.target = null;
    } else if (this.isFollowing) scroller.scrollTop = scroller.scrollHeight;
    else if (kept && this.anchor) scroller.scrollTop = kept.offsetTop - this.anchor.top;
    this.look();
  }

  // Find out what is in sight, and read what is next to it.
  look(): void {
    const { parts, size } = this;
    const [first, last, scroller] = [parts[0], parts.at(-1), this.scroller.current];
    if (!scroller || !first || !last) return;
    const { scrollTop, scrollHeight, clientHeight } = scroller;
    const below = scrollHeight - scrollTop - clientHeight;
    this.isFollowing = below < 24 && (last.end >= size || this.isFollowing);
    const part = parts.findLast(({ offset }) => (this.elementOf(offset)?.offsetTop ?? 0) <= scrollTop + 1) ?? first;
    const { offsetTop = 0, offsetHeight = 0 } = this.elementOf(part.offset) ?? {};
    const share = Math.max(0, scrollTop - offsetTop) / Math.max(1, offsetHeight);
    this.place = this.isFollowing ? size : Math.round(part.offset + share * (part.end - part.offset));
    this.draw();
    if (scrollTop < NEAR && first.offset > 0) this.extend(false);
    else if (below < NEAR && last.end < size) this.extend(true);
  }

  // Read the part after those that are held, or the one before. The farthest one goes if they become too many.
  private extend(isAfter: boolean): void {
    const { parts } = this;
    const [first, last] = [parts[0], parts.at(-1)];
    if (!first || !last || this.isBusy) return;
    const from = isAfter ? last.end : Math.max(0, first.offset - BYTES);
    void this.read(from, isAfter ? BYTES : first.offset - from, (part) => {
      if (part.end === part.offset) return parts;
      if (!isAfter) return [part, ...parts].slice(0, MOST);
      if (part.end - last.offset > BYTES) return [...parts, part].slice(-MOST);
      // Lines that are followed one by one become one part.
      return [...parts.slice(0, -1), { ...part, offset: last.offset, text: last.text + part.text }];
    });
  }

  // Read a window and use it, unless another one has been asked for meanwhile.
  private async read(offset: number, length: number, use: (part: LogPart) => LogPart[]): Promise<void> {
    this.request += 1;
    const { request } = this;
    this.isBusy = true;
    const query = { ...this.source, offset, bytes: length };
    const part = await get<LogPart>("/api/log", query).catch((problem: Error) => problem);
    if (request !== this.request) return;
    this.isBusy = false;
    this.error = part instanceof Error ? part : null;
    const parts = part instanceof Error ? this.parts : use(part);
    const size = part instanceof Error ? this.size : part.size;
    // Nothing is new if the last line has no end yet.
    if (parts !== this.parts || size > this.size) this.change(parts, size);
    else this.draw();
  }

  // The line in sight stays where it is, whatever is added or removed above it.
  private change(parts: LogPart[], size: number): void {
    const top = this.scroller.current?.scrollTop ?? 0;
    const elements = parts.map(({ offset }) => this.elementOf(offset)).filter((each) => each !== null);
    const kept = elements.find((each) => each.offsetTop + each.offsetHeight > top);
    this.anchor = kept ? { part: Number(kept.dataset.part), top: kept.offsetTop - top } : null;
    this.parts = parts;
    this.size = size;
    this.draw();
  }

  private elementOf(offset: number | null | undefined): HTMLElement | null {
    return this.scroller.current?.querySelector<HTMLElement>(`[data-part="${offset}"]`) ?? null;
  }
}

interface Properties {
  source: Source; // another one needs another key
  offset: number | null; // of the line to show; null: follow the end
  find: string; // text to mark
  isWrapped: boolean;
}

export function LogText({ source, offset, find, isWrapped }: Properties) {
  const { run, step, rank } = source;
  const element = useRef<HTMLElement>(null);
  const [, draw] = useReducer((before: number) => before + 1, 0);
  const [log] = useState(() => new Held(source, element, draw));
  const { parts, size, place, isFollowing } = log;
  useEffect(() => log.jump(offset ?? -BYTES), [offset, log]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: after each change of the text
  useLayoutEffect(() => log.settle(), [parts, size, isWrapped, log]);
  useEvents((event) => {
    const isOwn = "rank" in event && event.run === run && event.step === step && event.rank === rank;
    if (isOwn) log.grow(event.kind === "log" ? event.size : undefined);
  });
  const press = (event: KeyboardEvent) => {
    if (event.key !== "Home" && event.key !== "End") return;
    event.preventDefault();
    log.jump(event.key === "Home" ? 0 : -BYTES);
  };
  const isPartial = (parts[0]?.offset ?? 0) > 0 || (parts.at(-1)?.end ?? size) < size;
  return (
    <div className="log">
      {log.error !== null && <Problem error={log.error} />}
      <section
        ref={element}
        className={isWrapped ? "text wrap" : "text"}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled by keyboard
        tabIndex={0}
        aria-label={`Log of rank ${rank} of ${step}`}
        onScroll={() => log.look()}
        onKeyDown={press}
      >
        {parts.map((part) => (
          <Part key={part.offset} part={part} find={find} isTarget={part.offset === offset} />
        ))}
        {parts.length > 0 && size === 0 && <p className="soft">Nothing has been written.</p>}
      </section>
      <div className="position">
        <Button text="Start" className="plain" onClick={() => log.jump(0)} />
        <input
          type="range"
          aria-label="Position in the log"
          aria-valuetext={`${bytes(place)} of ${bytes(size)}`}
          max={Math.max(size, 1)}
          value={place}
          hidden={!isPartial}
          onChange={(event) => log.jump(Number(event.target.value))}
        />
        <Button text="End" className="plain" aria-pressed={isFollowing} onClick={() => log.jump(-BYTES)} />
        <span className="space" />
        <span className="soft">{isPartial && !isFollowing ? `${bytes(place)} of ${bytes(size)}` : bytes(size)}</span>
      </div>
    </div>
  );
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
