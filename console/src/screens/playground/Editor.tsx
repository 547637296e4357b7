// The editor of a query: CodeMirror in a shadow root, because it then uses adopted style sheets, which the content
// security policy allows. Pressing Escape and then Tab leaves the editor.
import {
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
  type Completion,
} from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands'
import { json } from '@codemirror/lang-json'
import { PostgreSQL, sql, StandardSQL, type SQLNamespace } from '@codemirror/lang-sql'
import { bracketMatching, HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import { setDiagnostics, type Diagnostic } from '@codemirror/lint'
import { Compartment, EditorState, type Extension } from '@codemirror/state'
import { drawSelection, EditorView, keymap, lineNumbers, placeholder } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { useEffect, useRef } from 'react'
import type { Kind, Span } from './query-body.ts'

export interface EditorProps {
  readonly kind: Kind
  readonly text: string
  readonly onText: (text: string) => void
  /** Names for completion: tables with their columns. */
  readonly tables: readonly { readonly schema: string; readonly table: string; readonly columns: readonly string[] }[]
  readonly problem: (Span & { readonly message: string }) | null
  readonly onRun: () => void
  readonly onStop: () => void
}

export function Editor(props: EditorProps) {
  const host = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView | null>(null)
  const latest = useRef(props)
  const language = useRef(new Compartment())
  useEffect(() => {
    latest.current = props
  })

  useEffect(() => {
    const place = host.current
    if (place === null) return undefined
    const root = place.shadowRoot ?? place.attachShadow({ mode: 'open' })
    const state = EditorState.create({
      doc: latest.current.text,
      extensions: [...extensions(latest), language.current.of(languageOf(latest.current))],
    })
    const editor = new EditorView({ state, parent: root, root })
    view.current = editor
    return () => {
      editor.destroy()
      view.current = null
    }
  }, [])

  const { kind, tables, text, problem } = props
  useEffect(() => {
    view.current?.dispatch({ effects: language.current.reconfigure(languageOf({ kind, tables })) })
  }, [kind, tables])
  useEffect(() => {
    const editor = view.current
    if (editor === null || editor.state.doc.toString() === text) return
    editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: text } })
  }, [text])
  useEffect(() => {
    const editor = view.current
    if (editor === null) return
    const end = editor.state.doc.length
    const shown: Diagnostic[] =
      problem === null || problem.from >= end
        ? []
        : [{ from: problem.from, to: Math.min(problem.to, end), severity: 'error', message: problem.message }]
    editor.dispatch(setDiagnostics(editor.state, shown))
  }, [problem, text])

  return <div className="editor" ref={host} />
}

function extensions(latest: { readonly current: EditorProps }): Extension[] {
  const command = (run: () => void) => () => {
    run()
    return true
  }
  return [
    keymap.of([
      { key: 'Mod-Enter', run: command(() => latest.current.onRun()), preventDefault: true },
      { key: 'Mod-.', run: command(() => latest.current.onStop()), preventDefault: true },
    ]),
    lineNumbers(),
    history(),
    drawSelection(),
    bracketMatching(),
    closeBrackets(),
    autocompletion({ icons: false }),
    EditorView.lineWrapping,
    syntaxHighlighting(COLOURS),
    THEME,
    EditorView.contentAttributes.of({
      'aria-label': 'Query',
      'aria-description': 'Press Escape, then Tab to leave the editor.',
      spellcheck: 'false',
    }),
    placeholder('SELECT …'),
    keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap, indentWithTab]),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) latest.current.onText(update.state.doc.toString())
    }),
  ]
}

function languageOf({ kind, tables }: Pick<EditorProps, 'kind' | 'tables'>): Extension {
  if (kind === 'MONGODB') return json()
  const schema: Record<string, Record<string, SQLNamespace>> = {}
  for (const { schema: name, table, columns } of tables) {
    ;(schema[name] ??= {})[table] = {
      self: entry(table, 'type'),
      children: columns.map((column) => entry(column, 'property')),
    }
  }
  const dialect = kind === 'POSTGRES' ? PostgreSQL : StandardSQL
  return sql({ dialect, schema, upperCaseKeywords: true, ...(kind === 'POSTGRES' ? { defaultSchema: 'public' } : {}) })
}

const entry = (label: string, type: string): Completion => ({ label, type })

const COLOURS = HighlightStyle.define([
  { tag: tags.keyword, color: 'var(--accent)', fontWeight: '500' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--ok)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--warn)' },
  { tag: tags.comment, color: 'var(--ink-3)', fontStyle: 'italic' },
  { tag: [tags.propertyName, tags.typeName], color: 'var(--ink)' },
])

const POPUP = {
  border: '1px solid var(--line)',
  borderRadius: 'var(--radius)',
  backgroundColor: 'var(--raised)',
  color: 'var(--ink)',
  boxShadow: 'var(--shadow-2)',
  overflow: 'hidden',
}

const THEME = EditorView.theme({
  '&': { minHeight: '132px', maxHeight: '40vh', color: 'var(--ink)', backgroundColor: 'transparent' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { font: 'var(--mono-13)', lineHeight: '1.5rem', overflow: 'auto', minHeight: '132px' },
  '.cm-content': { padding: '10px 0', caretColor: 'var(--accent)' },
  '.cm-line': { padding: '0 14px 0 8px' },
  '.cm-gutters': { backgroundColor: 'transparent', border: 'none', color: 'var(--ink-3)' },
  '.cm-lineNumbers .cm-gutterElement': { padding: '0 8px 0 14px', minWidth: '32px' },
  '.cm-cursor': { borderLeftColor: 'var(--accent)', borderLeftWidth: '2px' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
    background: 'light-dark(#cdd5ff, #34407c)',
  },
  '.cm-placeholder': { color: 'var(--ink-3)' },
  '.cm-lintRange-error': {
    backgroundImage: 'none',
    textDecoration: 'underline wavy var(--bad) 1px',
    textUnderlineOffset: '4px',
    paddingBottom: '0',
  },
  '&.cm-focused .cm-matchingBracket': { backgroundColor: 'var(--pressed)' },
  '.cm-tooltip': POPUP,
  '.cm-tooltip-lint': { font: 'var(--text-13)', maxWidth: '480px' },
  '.cm-diagnostic-error': { borderLeft: 'none', padding: '8px 12px' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul': { font: 'var(--mono-12)', maxHeight: '240px' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li': { padding: '4px 10px' },
  '.cm-tooltip-autocomplete ul li[aria-selected]': {
    backgroundColor: 'var(--accent-soft)',
    color: 'var(--on-accent-soft)',
  },
  '.cm-completionMatchedText': { textDecoration: 'none', fontWeight: '600' },
})
