// Returns the texts about one table, and the request body that changes one of them. In a request, `statements` and
// `columns` replace the whole list, so a change must also send the unchanged texts.
import type { Answer, Input } from '../../../api/types.ts'

export type Documentation = Answer<'getDocumentation'>
export type TableTexts = Documentation['tables'][number]
export type Text = NonNullable<TableTexts['summary']>
export type Status = Text['status']
type Body = Input<'putDocumentation'>['body']

/** Identifies a text of a table. */
export type Place =
  | { readonly kind: 'summary' | 'examples' }
  | { readonly kind: 'statement'; readonly index: number }
  | { readonly kind: 'column'; readonly name: string }

export interface Placed {
  readonly place: Place
  readonly label: string
  readonly text: Text
}

export const keyOf = (place: Place) =>
  place.kind === 'statement'
    ? `statement ${place.index}`
    : place.kind === 'column'
      ? `column ${place.name}`
      : place.kind

/** Returns every text except the summary. */
export function textsOf(table: TableTexts): readonly Placed[] {
  const placed: Placed[] = table.statements.map((text, index) => ({
    place: { kind: 'statement', index },
    label: `Statement ${index + 1}`,
    text,
  }))
  if (table.examples !== null) placed.push({ place: { kind: 'examples' }, label: 'Examples', text: table.examples })
  for (const [name, column] of Object.entries(table.columns)) {
    const { text, origin, status, restsOn, stale } = column
    if (text === undefined || origin === undefined || status === undefined) continue
    const whole = { text, origin, status, restsOn: restsOn ?? [], stale: stale ?? false }
    placed.push({ place: { kind: 'column', name }, label: name, text: whole })
  }
  return placed
}

/** Returns the body that changes the status of one text. If the words are changed too, their origin becomes HUMAN. */
export function bodyFor(table: TableTexts, place: Place, change: { text?: string; status: Status }): Body {
  const changed = (text: Text | null): Text => {
    const before = text ?? { text: '', origin: 'HUMAN', status: 'ACCEPTED', restsOn: [], stale: false }
    if (change.text === undefined || change.text === before.text) return { ...before, status: change.status }
    return { ...before, text: change.text, origin: 'HUMAN', status: change.status }
  }
  switch (place.kind) {
    case 'summary':
      return { summary: changed(table.summary) }
    case 'examples':
      return { examples: changed(table.examples) }
    case 'statement':
      return { statements: table.statements.map((text, n) => (n === place.index ? changed(text) : text)) }
    case 'column': {
      const column = table.columns[place.name]
      const { text = '', origin = 'HUMAN', status = 'ACCEPTED', restsOn = [], stale = false } = column ?? {}
      const now = { ...changed({ text, origin, status, restsOn, stale }), personal: column?.personal ?? null }
      return { columns: { ...table.columns, [place.name]: now } }
    }
  }
}

export const KINDS = ['summary', 'columns', 'statements', 'examples'] as const
export type Kind = (typeof KINDS)[number]

/** Returns the number of proposed texts of these kinds, without texts whose columns have changed. */
export function proposedIn(tables: readonly TableTexts[], kinds: ReadonlySet<Kind>): number {
  const waits = (text: Partial<Pick<Text, 'status' | 'stale'>> | null) =>
    text?.status === 'PROPOSED' && text.stale !== true
  let count = 0
  for (const { summary, examples, statements, columns } of tables) {
    if (kinds.has('summary') && waits(summary)) count++
    if (kinds.has('examples') && waits(examples)) count++
    if (kinds.has('statements')) count += statements.filter(waits).length
    if (kinds.has('columns')) count += Object.values(columns).filter(waits).length
  }
  return count
}

export const isAccepted = ({ status }: Text) => status === 'ACCEPTED' || status === 'CONFIRMED'

export interface Coverage {
  readonly tables: number
  /** The number of tables with an accepted summary. */
  readonly summarized: number
  readonly proposed: number
  readonly stale: number
}

export function coverageOf(tables: readonly TableTexts[]): Coverage {
  const coverage = { tables: 0, summarized: 0, proposed: 0, stale: 0 }
  for (const table of tables) {
    if (table.gone === true) continue
    coverage.tables++
    if (table.summary !== null && isAccepted(table.summary)) coverage.summarized++
    const texts = [...textsOf(table).map(({ text }) => text), ...(table.summary === null ? [] : [table.summary])]
    for (const text of texts) {
      if (text.status === 'PROPOSED') coverage.proposed++
      if (text.stale && text.status !== 'REJECTED') coverage.stale++
    }
  }
  return coverage
}
