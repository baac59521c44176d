// The code: the truth. What is typed moves the canvas; what is done on the canvas marks its lines here.
import { defaultKeymap, indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { yaml } from "@codemirror/lang-yaml";
import { defaultHighlightStyle, HighlightStyle, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, lintGutter, setDiagnostics } from "@codemirror/lint";
import { Annotation, Compartment, EditorState, type Extension, type Text } from "@codemirror/state";
import { Decoration, drawSelection, EditorView, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "react";
import type { Finding } from "../api";
import { useEditor } from "./editor";
import { allNodes } from "./ports";
import type { Session } from "./session";

const fromServer = Annotation.define<boolean>();
const marks = new Compartment();
const CHANGED = Decoration.line({ class: "changed" });
const CHOSEN = Decoration.line({ class: "chosen" });

// Return the marks of lines that the last change wrote, and of those of the node that is selected.
function marked(text: Text, changed: number[], first: number, last: number): Extension {
  const chosen = Array.from({ length: last - first + 1 }, (_, index) => first + index);
  const lines = (numbers: number[], mark: Decoration) =>
    numbers.filter((each) => each >= 1 && each <= text.lines).map((each) => mark.range(text.line(each).from));
  return EditorView.decorations.of(Decoration.set([...lines(changed, CHANGED), ...lines(chosen, CHOSEN)], true));
}

const COLORS = HighlightStyle.define([
  { tag: [tags.keyword, tags.controlKeyword, tags.operatorKeyword], color: "var(--s3)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--done)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--s0)" },
  { tag: [tags.comment], color: "var(--soft)", fontStyle: "italic" },
  { tag: [tags.definition(tags.variableName), tags.propertyName], color: "var(--link)" },
]);

export function Code() {
  const editor = useEditor();
  const { document, draft, node, target, session } = editor;
  const frame = useRef<HTMLElement>(null);
  const view = useRef<EditorView>(null);
  const latest = useRef(editor);
  latest.current = editor;

  // biome-ignore lint/correctness/useExhaustiveDependencies: the effects below bring it up to date
  useEffect(() => {
    const nonce = window.document.querySelector<HTMLMetaElement>('meta[name="nonce"]')?.content ?? "";
    const created = new EditorView({
      parent: frame.current ?? window.document.body,
      state: EditorState.create({
        doc: document.text,
        extensions: [
          EditorView.cspNonce.of(nonce),
          lineNumbers(),
          lintGutter(),
          drawSelection(),
          marks.of([]),
          document.language === "python" ? python() : yaml(),
          indentUnit.of(document.language === "python" ? "    " : "  "),
          syntaxHighlighting(COLORS),
          syntaxHighlighting(defaultHighlightStyle, { fallback: true }),
          EditorState.readOnly.of(document.read_only),
          EditorView.contentAttributes.of({
            tabindex: "0",
            "aria-label": `Code of ${document.path}. Escape, then Tab leaves it.`,
          }),
          keymap.of([indentWithTab, ...defaultKeymap]),
          EditorView.updateListener.of((update) => {
            if (update.transactions.some((each) => each.annotation(fromServer))) return;
            if (update.docChanged) latest.current.session.type(update.state.doc.toString());
            else if (update.selectionSet && update.view.hasFocus) {
              const line = update.state.doc.lineAt(update.state.selection.main.head).number;
              const around = allNodes(latest.current.root).filter(({ first, last }) => first <= line && line <= last);
              const node = around.at(-1); // the innermost one
              if (node) latest.current.select([node.path], true);
            }
          }),
        ],
      }),
    });
    view.current = created;
    return () => created.destroy();
  }, [session]);

  const { changed, findings } = document;
  const text = draft ?? document.text; // what was typed meanwhile is newer than the server's
  const [first, last] = node?.first ? [node.first, node.last] : [0, -1];
  useEffect(() => {
    const here = view.current;
    if (!here) return;
    if (here.state.doc.toString() !== text) here.dispatch(replacement(here.state.doc.toString(), text));
    if (draft !== null) return;
    const { doc } = here.state;
    here.dispatch({ effects: marks.reconfigure(marked(doc, changed, first, last)) });
    here.dispatch(setDiagnostics(here.state, diagnostics(doc, findings, latest.current.editable ? session : null)));
  }, [text, draft, changed, first, last, findings, session]);
  useEffect(() => show(view.current, first), [first]);
  useEffect(() => show(view.current, changed[0] ?? 0), [changed]);
  useEffect(() => show(view.current, target?.line ?? 0, true), [target]);
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

// Scroll to a line. focus: put the cursor there; without it, nothing happens while the user types
function show(view: EditorView | null, number: number, focus = false): void {
  if (!view || number < 1 || (view.hasFocus && !focus)) return;
  const { from } = view.state.doc.line(Math.min(number, view.state.doc.lines));
  const effects = EditorView.scrollIntoView(from, { y: focus ? "center" : "nearest", yMargin: 40 });
  view.dispatch(focus ? { effects, selection: { anchor: from } } : { effects });
  if (focus) view.focus();
}

function diagnostics(text: Text, findings: Finding[], session: Session | null): Diagnostic[] {
  return findings
    .filter((each) => each.line >= 1 && each.line <= text.lines)
    .map((each) => {
      const line = text.line(each.line);
      const indent = line.text.length - line.text.trimStart().length;
      const fix = { name: `Fix: ${each.fix}`, apply: () => void session?.edit(...each.edits) };
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
