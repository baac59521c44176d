// The code: the truth. What is typed moves the canvas; what is done on the canvas marks its lines here.
import { defaultKeymap, indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { yaml } from "@codemirror/lang-yaml";
import { defaultHighlightStyle, HighlightStyle, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, lintGutter, setDiagnostics } from "@codemirror/lint";
import { Annotation, EditorState, RangeSetBuilder, StateEffect, StateField, type Text } from "@codemirror/state";
import { Decoration, type DecorationSet, drawSelection, EditorView, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "react";
import type { Finding } from "../api";
import { nodeOfLine, useEditor } from "./editor";
import { nodeAt } from "./ports";
import type { Session } from "./session";

const fromServer = Annotation.define<boolean>();
const mark = StateEffect.define<{ changed: number[]; chosen: [number, number] | null }>();
const CHANGED = Decoration.line({ class: "changed" });
const CHOSEN = Decoration.line({ class: "chosen" });

const marks = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(before, transaction) {
    const effect = transaction.effects.find((each) => each.is(mark));
    if (!effect) return before.map(transaction.changes);
    return marked(transaction.state.doc, effect.value.changed, effect.value.chosen);
  },
  provide: (field) => EditorView.decorations.from(field),
});

function marked(text: Text, changed: number[], chosen: [number, number] | null): DecorationSet {
  const builder = new RangeSetBuilder<Decoration>();
  const isChanged = new Set(changed);
  for (let line = 1; line <= text.lines; line += 1) {
    const { from } = text.line(line);
    if (isChanged.has(line)) builder.add(from, from, CHANGED);
    if (chosen && chosen[0] <= line && line <= chosen[1]) builder.add(from, from, CHOSEN);
  }
  return builder.finish();
}

const COLORS = HighlightStyle.define([
  { tag: [tags.keyword, tags.controlKeyword, tags.operatorKeyword], color: "var(--s3)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--done)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--s0)" },
  { tag: [tags.comment], color: "var(--soft)", fontStyle: "italic" },
  {
    tag: [tags.definition(tags.propertyName), tags.definition(tags.variableName), tags.propertyName],
    color: "var(--link)",
  },
]);

export function Code() {
  const editor = useEditor();
  const { document, draft, selection, session, root } = editor;
  const frame = useRef<HTMLElement>(null);
  const view = useRef<EditorView>(null);
  const latest = useRef(editor);
  latest.current = editor;

  // biome-ignore lint/correctness/useExhaustiveDependencies: the effects below bring it up to date
  useEffect(() => {
    const nonce = window.document.querySelector<HTMLMetaElement>('meta[name="nonce"]')?.content ?? "";
    const step = (which: "undo" | "redo") => () => {
      latest.current.session[which]();
      return true;
    };
    const created = new EditorView({
      parent: frame.current ?? window.document.body,
      state: EditorState.create({
        doc: document.text,
        extensions: [
          EditorView.cspNonce.of(nonce),
          lineNumbers(),
          lintGutter(),
          drawSelection(),
          marks,
          document.language === "python" ? python() : yaml(),
          indentUnit.of(document.language === "python" ? "    " : "  "),
          syntaxHighlighting(COLORS),
          syntaxHighlighting(defaultHighlightStyle, { fallback: true }),
          EditorState.readOnly.of(document.read_only),
          EditorView.contentAttributes.of({ tabindex: "0", "aria-label": `Code of ${document.path}` }),
          keymap.of([
            { key: "Mod-z", run: step("undo") },
            { key: "Mod-Shift-z", run: step("redo") },
            indentWithTab,
            ...defaultKeymap,
          ]),
          EditorView.updateListener.of((update) => {
            if (update.transactions.some((each) => each.annotation(fromServer))) return;
            if (update.docChanged) latest.current.session.type(update.state.doc.toString());
            else if (update.selectionSet && update.view.hasFocus) {
              const line = update.state.doc.lineAt(update.state.selection.main.head).number;
              const node = nodeOfLine(latest.current.root, line);
              if (node) latest.current.select([node.path], true);
            }
          }),
        ],
      }),
    });
    view.current = created;
    const go = (event: CustomEventInit<number>) => show(created, event.detail ?? 1, true);
    addEventListener("designer-line", go as EventListener);
    return () => {
      removeEventListener("designer-line", go as EventListener);
      created.destroy();
    };
  }, [session]);

  // A text that was typed meanwhile is newer than the server's.
  const text = draft ?? document.text;
  useEffect(() => {
    const here = view.current;
    if (here && here.state.doc.toString() !== text) here.dispatch(replacement(here.state.doc.toString(), text));
  }, [text]);

  const [only] = selection;
  const node = selection.length === 1 && only !== undefined ? nodeAt(root, only) : undefined;
  const chosen = node?.first ? `${node.first} ${node.last}` : "";
  const { changed, findings } = document;
  useEffect(() => {
    const here = view.current;
    if (!here || draft !== null) return;
    const [first = 0, last = 0] = chosen.split(" ").map(Number);
    here.dispatch({ effects: mark.of({ changed, chosen: first ? [first, last] : null }) });
  }, [changed, chosen, draft]);
  useEffect(() => {
    const here = view.current;
    if (!here || draft !== null) return;
    here.dispatch(
      setDiagnostics(here.state, diagnostics(here.state.doc, findings, latest.current.editable ? session : null)),
    );
  }, [findings, draft, session]);
  useEffect(() => {
    const here = view.current;
    const [first] = chosen.split(" ").map(Number);
    if (here && first && !here.hasFocus) show(here, first, false);
  }, [chosen]);
  useEffect(() => {
    const [line] = changed;
    const here = view.current;
    if (here && line && !here.hasFocus) show(here, line, false);
  }, [changed]);
  return <section ref={frame} className="code" aria-label="Code" />;
}

// Return the smallest change that makes one text the other, so that the cursor and the view stay.
function replacement(before: string, after: string) {
  let start = 0;
  while (start < before.length && before[start] === after[start]) start += 1;
  let end = 0;
  const most = Math.min(before.length, after.length) - start;
  while (end < most && before[before.length - 1 - end] === after[after.length - 1 - end]) end += 1;
  const insert = after.slice(start, after.length - end);
  return { changes: { from: start, to: before.length - end, insert }, annotations: fromServer.of(true) };
}

function show(view: EditorView, number: number, focus: boolean): void {
  const line = view.state.doc.line(Math.min(Math.max(number, 1), view.state.doc.lines));
  const effects = EditorView.scrollIntoView(line.from, { y: focus ? "center" : "nearest", yMargin: 40 });
  view.dispatch(focus ? { effects, selection: { anchor: line.from } } : { effects });
  if (focus) view.focus();
}

function diagnostics(text: Text, findings: Finding[], session: Session | null): Diagnostic[] {
  return findings
    .filter((each) => each.line >= 1 && each.line <= text.lines)
    .map((each) => {
      const line = text.line(each.line);
      const indent = line.text.length - line.text.trimStart().length;
      const fix = { name: `Fix: ${each.fix}`, apply: () => void session?.edit(`Fixed: ${each.fix}`, ...each.edits) };
      return {
        from: line.from + indent,
        to: line.to,
        severity: each.level === "error" ? "error" : each.level === "warning" ? "warning" : "info",
        message: [each.found, each.expected && `Expected ${each.expected}.`, !each.edits.length && each.fix]
          .filter(Boolean)
          .join("\n"),
        ...(session && each.edits.length && { actions: [fix] }),
      };
    });
}
