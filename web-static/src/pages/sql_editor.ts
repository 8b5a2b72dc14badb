// The editor of the SQL console. The page's content security policy forbids style elements. So the
// editor lives in a shadow root, where it uses constructed style sheets.
import { autocompletion, closeBrackets, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { SQLite, sql } from "@codemirror/lang-sql";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { Compartment, EditorState, Prec } from "@codemirror/state";
import { EditorView, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

export interface SqlEditor {
    text: () => string;
    setText: (text: string) => void;
    setSchema: (schema: Record<string, string[]>) => void;
    destroy: () => void;
}

const editorTheme = EditorView.theme({
    "&": { color: "var(--text)", backgroundColor: "transparent", fontSize: "13.5px" },
    "&.cm-focused": { outline: "2px solid var(--accent)" },
    ".cm-content": { fontFamily: "var(--mono)", caretColor: "var(--text)", minHeight: "120px" },
    ".cm-cursor": { borderLeftColor: "var(--text)" },
    ".cm-gutters": { backgroundColor: "transparent", color: "var(--dim)", border: "0" },
    ".cm-tooltip": { backgroundColor: "var(--card)", color: "var(--text)", borderColor: "var(--line)" },
    ".cm-tooltip-autocomplete > ul > li[aria-selected]": {
        backgroundColor: "var(--accent-soft)",
        color: "var(--text)",
    },
});

const colours = HighlightStyle.define([
    { tag: tags.keyword, color: "var(--accent)", fontWeight: "600" },
    { tag: tags.string, color: "var(--good)" },
    { tag: tags.number, color: "var(--warn)" },
    { tag: tags.comment, color: "var(--dim)", fontStyle: "italic" },
]);

export function makeEditor(box: HTMLElement, text: string, onRun: (text: string) => void): SqlEditor {
    const root = box.shadowRoot ?? box.attachShadow({ mode: "open" });
    root.replaceChildren();
    const language = new Compartment();
    const run = (view: EditorView) => {
        onRun(view.state.doc.toString());
        return true;
    };
    const view = new EditorView({
        root,
        parent: root,
        state: EditorState.create({
            doc: text,
            extensions: [
                Prec.highest(keymap.of([{ key: "Mod-Enter", run }])),
                lineNumbers(),
                history(),
                closeBrackets(),
                autocompletion(),
                language.of(sql({ dialect: SQLite })),
                syntaxHighlighting(colours),
                editorTheme,
                EditorView.lineWrapping,
                EditorView.contentAttributes.of({ "aria-label": "SQL" }),
                keymap.of([...completionKeymap, ...defaultKeymap, ...historyKeymap]),
            ],
        }),
    });
    return {
        text: () => view.state.doc.toString(),
        setText: (next) => {
            if (next !== view.state.doc.toString()) {
                view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } });
            }
        },
        setSchema: (schema) =>
            view.dispatch({ effects: language.reconfigure(sql({ dialect: SQLite, schema, upperCaseKeywords: true })) }),
        destroy: () => view.destroy(),
    };
}
