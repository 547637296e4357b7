// What is said of a table, as it is kept: texts with where they come from, what became of them and the columns they
// rest on. Shapes and pure questions alone.
import { z } from 'zod'
import type { RestingPlace } from './columns.ts'

const Origin = z.enum(['GENERATED', 'HUMAN'])
const Status = z.enum(['PROPOSED', 'ACCEPTED', 'CONFIRMED', 'REJECTED'])

/** One text. `types`: of each column it rests on, when it was written; that is how it grows stale. */
const Said = z.object({
  text: z.string(),
  origin: Origin,
  status: Status,
  restsOn: z.array(z.string()),
  types: z.record(z.string(), z.string()),
})
export type Said = z.infer<typeof Said>

const SaidOfColumn = z.object({
  said: Said.nullable(),
  /** By hand: its values are a person's, or are not; null: the rules decide. */
  personal: z.boolean().nullable(),
})

/** All that is said of one table. */
const Draft = z.object({
  summary: Said.nullable(),
  examples: Said.nullable(),
  statements: z.array(Said),
  columns: z.record(z.string(), SaidOfColumn),
})
export type Draft = z.infer<typeof Draft>

export const EMPTY: Draft = { summary: null, examples: null, statements: [], columns: {} }

/** Reads what the store keeps. Throws a ZodError for a damaged store. */
export function readDraft(json: string): Draft {
  return Draft.parse(JSON.parse(json))
}

/** Every text of a draft. */
export function textsOf(draft: Draft): readonly Said[] {
  const ofColumns = Object.values(draft.columns).map((column) => column.said)
  return [draft.summary, draft.examples, ...draft.statements, ...ofColumns].filter((said) => said !== null)
}

export function isEmpty(draft: Draft): boolean {
  return textsOf(draft).length === 0 && Object.values(draft.columns).every((column) => column.personal === null)
}

/** Somebody stands by it: only such a text is ever published. */
export function isApproved(said: Said): boolean {
  return said.status === 'ACCEPTED' || said.status === 'CONFIRMED'
}

/** A column it rests on has gone, or is of another type than when it was written. */
export function isStale(said: Said, place: RestingPlace): boolean {
  return said.restsOn.some((name) => place.typeOf(name) === undefined || place.typeOf(name) !== said.types[name])
}

/** The types, now, of the columns a text rests on. */
export function typesOf(restsOn: readonly string[], place: RestingPlace): Record<string, string> {
  return Object.fromEntries(
    restsOn.flatMap((name) => {
      const type = place.typeOf(name)
      return type === undefined ? [] : [[name, type]]
    }),
  )
}

/** The columns that somebody marked as personal. */
export function personalOf(draft: Draft): readonly string[] {
  return Object.entries(draft.columns).flatMap(([name, { personal }]) => (personal === true ? [name] : []))
}

/** In the quotation marks that the rules put around values. */
export function tellsValues(text: string): boolean {
  return /[“”]/.test(text)
}

/** What was generated from values of a column that is marked personal goes with them; what people wrote is theirs. */
export function withoutPersonal(draft: Draft): Draft {
  const personal = new Set(personalOf(draft))
  const kept = (said: Said | null): Said | null => {
    const tells = said?.origin === 'GENERATED' && tellsValues(said.text)
    return tells && said.restsOn.some((name) => personal.has(name)) ? null : said
  }
  return {
    summary: kept(draft.summary),
    examples: kept(draft.examples),
    statements: draft.statements.map(kept).filter((said) => said !== null),
    columns: Object.fromEntries(
      Object.entries(draft.columns).map(([name, column]) => [name, { ...column, said: kept(column.said) }]),
    ),
  }
}
