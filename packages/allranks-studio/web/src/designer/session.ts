// The document that is open: its last state from the server, what was sent and not answered, what was refused.
import type { Conflict, Document, Edit, Event, Refusal } from "../api";
import { onEvent } from "../events";
import { show } from "../parts";
import { get, post, ServerError } from "../server";
import { createStore } from "../store";

export interface SessionState {
  document: Document | null;
  error: unknown; // why the document could not be opened
  pending: Edit[][]; // changes that were sent, and not answered yet; a text has no edits
  draft: string | null; // a text that was typed, and that the server does not have yet
  refused: (Partial<Conflict & Refusal> & { retry: () => void }) | null; // retry: send the same change again
}

const TYPING = 300; // milliseconds without a key after which a text is sent

export class Session {
  readonly state = createStore<SessionState>({ document: null, error: null, pending: [], draft: null, refused: null });
  private readonly file: { folder: string; path: string };
  private queue: Promise<unknown> = Promise.resolve();
  private timer = 0;
  private isUnsent = false; // whether the draft was not sent
  private base = ""; // the digest of the text that the next change is based on; a draft keeps its own
  private moved: Document["positions"] = {};

  constructor(folder: string, path: string) {
    this.file = { folder, path };
  }

  // Load the document and follow its changes until the returned function is called.
  open(): () => void {
    this.load();
    const stop = onEvent((event) => this.happened(event));
    return () => {
      stop();
      this.flush();
    };
  }

  async load(): Promise<void> {
    try {
      this.arrived(await get<Document>("/api/document", this.file));
    } catch (error) {
      if (this.state.get().document) show(error);
      else this.set({ error });
    }
  }

  // Make all of the edits or none. Return the document after them; null if they were not made.
  edit(...edits: Edit[]): Promise<Document | null> {
    return this.change("edit", { edits }, edits);
  }

  // Wait until all changes were answered.
  async settle(): Promise<void> {
    this.flush();
    await this.queue;
  }

  undo = () => this.change("undo");
  redo = () => this.change("redo");

  // Take over a text that was typed. It is sent when no key was hit for a while.
  type(draft: string): void {
    this.set({ draft });
    this.isUnsent = true;
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.flush(), TYPING);
  }

  // Send the text that was typed now.
  private flush(): void {
    clearTimeout(this.timer);
    const text = this.state.get().draft;
    if (!this.isUnsent || text === null) return;
    this.isUnsent = false;
    this.change("text", { text });
  }

  // Move nodes. The server remembers their places.
  move(positions: Document["positions"]): void {
    Object.assign(this.moved, positions);
    const { document } = this.state.get();
    if (document) this.set({ document: { ...document, positions: { ...document.positions, ...positions } } });
    this.place(positions);
  }

  // Forget where nodes were moved.
  arrange = async () => {
    this.moved = {};
    await this.place({});
    await this.load();
  };

  private place(positions: Document["positions"]): Promise<unknown> {
    this.queue = this.queue.then(() => post("/api/document/positions", { ...this.file, positions }).catch(show));
    return this.queue;
  }

  // Forget what was refused.
  dismiss = () => this.set({ refused: null });

  // Forget a text that was typed and not taken.
  drop = () => {
    this.base = this.state.get().document?.digest ?? "";
    this.set({ refused: null, draft: null });
  };

  private set(changes: Partial<SessionState>): void {
    this.state.set((before) => ({ ...before, ...changes }));
  }

  // Changes wait for each other, since each is based on the text that the one before wrote.
  private change(route: string, body: object = {}, edits: Edit[] = []): Promise<Document | null> {
    if (route !== "text") this.flush();
    this.set({ pending: [...this.state.get().pending, edits], refused: null });
    const answer = this.queue.then(async () => {
      try {
        const sent = { ...this.file, digest: this.base, ...body };
        return this.arrived(await post<Document>(`/api/document/${route}`, sent), true);
      } catch (error) {
        this.refuse(error, () => (route === "text" ? this.flush() : this.change(route, body, edits)));
        return null;
      } finally {
        this.set({ pending: this.state.get().pending.filter((each) => each !== edits) });
      }
    });
    this.queue = answer;
    return answer;
  }

  // Take over a document from the server. Its text has the line ends of the editor; the server keeps those of the file.
  // isOwn: a change of this page wrote it, and what is typed meanwhile is based on it
  private arrived(found: Document, isOwn = false): Document {
    const { draft } = this.state.get();
    const text = found.text.replaceAll("\r\n", "\n");
    const document = { ...found, text, positions: { ...found.positions, ...this.moved } };
    if (isOwn || draft === null || draft === text) this.base = found.digest;
    this.set({ document, error: null, draft: draft === text ? null : draft });
    return document;
  }

  private refuse(error: unknown, again: () => void): void {
    this.isUnsent ||= this.state.get().draft !== null;
    const retry = () => {
      this.base = this.state.get().document?.digest ?? "";
      again();
    };
    if (error instanceof ServerError && [409, 422].includes(error.status)) {
      const body = error.body as Partial<Conflict & Refusal>;
      if (body.document) this.arrived(body.document);
      this.set({ refused: { ...body, retry } });
    } else show(error);
  }

  private happened(event: Event): void {
    const { document, pending } = this.state.get();
    const { folder, path } = this.file;
    const isThis = event.kind === "document" && event.folder === folder && event.path === path;
    const isOther = isThis && event.digest !== document?.digest && !pending.length;
    if (isOther || event.kind === "reset") this.load();
  }
}
