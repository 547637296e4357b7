// What is said of a table, as it is kept: texts with where they come from, what became of them and the columns they
// rest on. Shapes and pure questions alone.
import { z } from 'zod'
import { byName, jsonOf } from '../contract/by-name.ts'
import type { RestingPlace } from './columns.ts'

const Origin = z.enum(['GENERATED', 'HUMAN'])
const Status = z.enum(['PROPOSED', 'ACCEPTED', 'CONFIRMED', 'REJECTED'])

/** What tells where a text comes from. `tells`: it was written by who knew values, and may hold some. */
export const Provenance = {
  text: z.string(),
  origin: Origin,
  restsOn: z.array(z.string()),
  /** As all that was kept before this was: nobody knows of it. */
  tells: z.boolean().default(true),
}

/** One text. `types`: of each column it rests on, when it was written; that is how it grows stale. */
const Said = z.object({ ...Provenance, status: Status, types: byName(z.string()) })
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
  columns: byName(SaidOfColumn),
})
export type Draft = z.infer<typeof Draft>

export const EMPTY: Draft = { summary: null, examples: null, statements: [], columns: new Map() }

/** Reads what the store keeps. Throws a ZodError for a damaged store. */
export function readDraft(json: string): Draft {
  return Draft.parse(JSON.parse(json))
}

export function writeDraft(draft: Draft): string {
  return jsonOf(draft)
}

/** Every text of a draft. */
export function textsOf(draft: Draft): readonly Said[] {
  const ofColumns = [...draft.columns.values()].map((column) => column.said)
  return [draft.summary, draft.examples, ...draft.statements, ...ofColumns].filter((said) => said !== null)
}

export function isEmpty(draft: Draft): boolean {
  return textsOf(draft).length === 0 && [...draft.columns.values()].every((column) => column.personal === null)
}

/** Somebody stands by it: only such a text is ever published. */
export function isApproved(said: Said): boolean {
  return said.status === 'ACCEPTED' || said.status === 'CONFIRMED'
}

/** A column it rests on has gone, or is of another type than when it was written. */
export function isStale(said: Said, place: RestingPlace): boolean {
  return said.restsOn.some((name) => place.typeOf(name) === undefined || place.typeOf(name) !== said.types.get(name))
}

/** The types, now, of the columns a text rests on. */
export function typesOf(restsOn: readonly string[], place: RestingPlace): ReadonlyMap<string, string> {
  return new Map(
    restsOn.flatMap((name) => {
      const type = place.typeOf(name)
      return type === undefined ? [] : [[name, type] as const]
    }),
  )
}

/** The columns that somebody marked as personal. */
export function personalOf(draft: Draft): readonly string[] {
  return [...draft.columns].flatMap(([name, { personal }]) => (personal === true ? [name] : []))
}

/** The draft without the texts that go; nothing else of it changes. */
export function without(draft: Draft, goes: (said: Said) => boolean): Draft {
  const kept = (said: Said | null): Said | null => (said !== null && goes(said) ? null : said)
  return {
    summary: kept(draft.summary),
    examples: kept(draft.examples),
    statements: draft.statements.filter((said) => !goes(said)),
    columns: new Map(
      [...draft.columns]
        .map(([name, column]) => [name, { ...column, said: kept(column.said) }] as const)
        .filter(([, { said, personal }]) => said !== null || personal !== null),
    ),
  }
}
