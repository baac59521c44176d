// The document that is open: its last state from the server, what was sent and not answered, what to tell the user.
import type { Conflict, Document, Edit, Event, Finding, Refusal } from "../api";
import { onEvent } from "../events";
import { get, post, ServerError } from "../server";
import { createStore } from "../store";
import { allNodes } from "./ports";

export interface Notice {
  title: string;
  lines: string[];
  problems: Finding[];
  retry: (() => void) | null; // send the same change again
}

export interface SessionState {
  document: Document | null;
  error: unknown; // why the document could not be opened
  pending: Edit[]; // sent, and not answered yet
  waiting: number; // changes that were sent, and not answered yet
  draft: string | null; // a text that was typed, and that the server does not have yet
  notice: Notice | null;
  said: string; // for screen readers
}

const TYPING = 300; // milliseconds without a key after which a text is sent
const MOVING = 400;

const NONE = { document: null, error: null, draft: null, notice: null };
const NOTHING: SessionState = { ...NONE, pending: [], waiting: 0, said: "" };

export class Session {
  readonly state = createStore<SessionState>(NOTHING);
  private queue: Promise<unknown> = Promise.resolve();
  private typing = 0;
  private moving = 0;
  private moved: Document["positions"] = {};

  constructor(
    readonly folder: string,
    readonly path: string,
  ) {}

  // Load the document and follow its changes until the returned function is called.
  open(): () => void {
    this.load();
    const stop = onEvent((event) => this.happened(event));
    return () => {
      stop();
      this.flush();
      this.save();
    };
  }

  async load(): Promise<void> {
    try {
      this.arrived(await get<Document>("/api/document", { folder: this.folder, path: this.path }), "");
    } catch (error) {
      if (this.state.get().document) this.tell(error);
      else this.set({ error });
    }
  }

  // Make all of the edits or none, and say so. Return the document after them; null if they were not made.
  edit(said: string, ...edits: Edit[]): Promise<Document | null> {
    this.flush();
    return this.change("edit", { edits }, said, edits);
  }

  // Wait until all changes were answered.
  async settle(): Promise<void> {
    this.flush();
    await this.queue;
  }

  undo = () => this.step("undo");
  redo = () => this.step("redo");

  private step(which: "undo" | "redo"): void {
    this.flush();
    const what = this.state.get().document?.[which];
    if (what) this.change(which, {}, `${which === "undo" ? "Undone" : "Done again"}: ${what}`);
  }

  // Take over a text that was typed. It is sent when no key was hit for a while.
  type(text: string): void {
    this.set({ draft: text });
    clearTimeout(this.typing);
    this.typing = window.setTimeout(() => this.flush(), TYPING);
  }

  // Send the text that was typed now.
  flush(): void {
    clearTimeout(this.typing);
    const { draft, document } = this.state.get();
    if (!this.typing || draft === null || draft === document?.text) return;
    this.typing = 0;
    this.change("text", { text: draft }, "");
  }

  // Move nodes. The server remembers their places.
  move(positions: Document["positions"]): void {
    const { document } = this.state.get();
    if (!document) return;
    this.set({ document: { ...document, positions: { ...document.positions, ...positions } } });
    Object.assign(this.moved, positions);
    clearTimeout(this.moving);
    this.moving = window.setTimeout(() => this.save(), MOVING);
  }

  private save(): void {
    clearTimeout(this.moving);
    const positions = this.moved;
    if (!Object.keys(positions).length) return;
    this.moved = {};
    const { folder, path } = this;
    post("/api/document/positions", { folder, path, positions }).catch(this.tell);
  }

  // Forget where nodes were moved.
  arrange = async () => {
    const { folder, path } = this;
    await post("/api/document/positions", { folder, path, positions: {} }).catch(this.tell);
    await this.load();
  };

  say = (said: string) => this.set({ said });

  private tell = (error: unknown) => this.set({ notice: notice(error, null) });

  // Forget the message, and a text that the server did not take.
  dismiss = () => this.set({ notice: null, draft: null });

  private set(changes: Partial<SessionState>): void {
    this.state.set((before) => ({ ...before, ...changes }));
  }

  // Changes wait for each other, since each is based on the text that the one before wrote.
  private change(route: string, body: object, said: string, edits: Edit[] = []): Promise<Document | null> {
    const { pending, waiting } = this.state.get();
    this.set({ pending: [...pending, ...edits], waiting: waiting + 1, notice: null });
    const { folder, path } = this;
    const answer = this.queue.then(async () => {
      try {
        const digest = this.state.get().document?.digest;
        const document = await post<Document>(`/api/document/${route}`, { folder, path, digest, ...body });
        this.arrived(document, said);
        return document;
      } catch (error) {
        this.refused(error, () => this.change(route, body, said, edits));
        return null;
      } finally {
        const { pending, waiting } = this.state.get();
        this.set({ pending: pending.filter((each) => !edits.includes(each)), waiting: waiting - 1 });
      }
    });
    this.queue = answer;
    return answer;
  }

  private arrived(document: Document, said: string): void {
    const { draft, ...before } = this.state.get();
    const positions = { ...document.positions, ...this.moved };
    const rest = draft === document.text ? null : draft;
    this.set({ document: { ...document, positions }, error: null, draft: rest, said: said || before.said });
  }

  private refused(error: unknown, retry: () => void): void {
    const conflict = error instanceof ServerError && error.status === 409 ? (error.body as Conflict) : null;
    if (conflict) this.set({ document: conflict.document });
    const found = notice(error, conflict && retry);
    this.set({ notice: found, said: [found.title, ...found.lines].join(" ") });
  }

  private happened(event: Event): void {
    const { document, waiting } = this.state.get();
    if (event.kind === "reset") this.load();
    if (!document || !("path" in event) || event.folder !== this.folder || event.path !== this.path) return;
    if (event.kind === "document" && event.digest !== document.digest && !waiting) {
      this.load().then(() => this.say("The file was changed by another program."));
    }
  }
}

function notice(error: unknown, retry: (() => void) | null): Notice {
  const title = error instanceof Error ? error.message : String(error);
  const fix = error instanceof ServerError ? error.fix : "";
  const body = error instanceof ServerError ? (error.body as Partial<Refusal> | null) : null;
  const refused = error instanceof ServerError && error.status === 422 && body;
  if (!refused) return { title, lines: fix && !title.includes(fix) ? [fix] : [], problems: [], retry };
  const lines = body.difference?.length ? ["The edit would also have changed:", ...body.difference] : [];
  return { title: "Nothing was changed.", lines, problems: body.problems ?? [], retry };
}

// Return the paths of nodes that one document has and another has not.
export function added(before: Document | null, after: Document): string[] {
  const known = new Set([...allNodes(before?.graph)].map((node) => node.path));
  return [...allNodes(after.graph)].map((node) => node.path).filter((path) => !known.has(path));
}
