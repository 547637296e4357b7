// The stored documentation of a table. Each text has its origin, its status and the columns that it depends on.
import { z } from 'zod'
import { byName, jsonOf } from '../contract/name-keyed-objects.ts'
import type { RestingPlace } from './text-dependencies.ts'

const Origin = z.enum(['GENERATED', 'HUMAN'])
const Status = z.enum(['PROPOSED', 'ACCEPTED', 'CONFIRMED', 'REJECTED'])

/** A text and its origin. `tells` is true if the text may contain values, because its writer was given values. */
export const Provenance = {
  text: z.string(),
  origin: Origin,
  restsOn: z.array(z.string()),
  /** True for texts that are older than this field, because their writer is unknown. */
  tells: z.boolean().default(true),
}

/**
 * `types` has the type of each column in `restsOn` when the text was written. isStale() compares it with the current
 * type.
 */
export const Said = z.object({ ...Provenance, status: Status, types: byName(z.string()) })
export type Said = z.infer<typeof Said>

const SaidOfColumn = z.object({
  said: Said.nullable(),
  /** A person's mark: true if the values are personal, false if not, null if the rules decide. */
  personal: z.boolean().nullable(),
})

const Draft = z.object({
  summary: Said.nullable(),
  examples: Said.nullable(),
  statements: z.array(Said),
  columns: byName(SaidOfColumn),
})
export type Draft = z.infer<typeof Draft>

export const EMPTY: Draft = { summary: null, examples: null, statements: [], columns: new Map() }

export function readDraft(json: string): Draft {
  return Draft.parse(JSON.parse(json))
}

export function writeDraft(draft: Draft): string {
  return jsonOf(draft)
}

export function textsOf(draft: Draft): readonly Said[] {
  const ofColumns = [...draft.columns.values()].map((column) => column.said)
  return [draft.summary, draft.examples, ...draft.statements, ...ofColumns].filter((said) => said !== null)
}

export function isEmpty(draft: Draft): boolean {
  return textsOf(draft).length === 0 && [...draft.columns.values()].every((column) => column.personal === null)
}

/** Only texts that a person approved are published. */
export function isApproved(said: Said): boolean {
  return said.status === 'ACCEPTED' || said.status === 'CONFIRMED'
}

/** Returns true if a column that the text depends on was removed or changed its type. */
export function isStale(said: Said, place: RestingPlace): boolean {
  return said.restsOn.some((name) => place.typeOf(name) === undefined || place.typeOf(name) !== said.types.get(name))
}

/** Returns the current types of the columns in `restsOn`. Columns that no longer exist are left out. */
export function typesOf(restsOn: readonly string[], place: RestingPlace): ReadonlyMap<string, string> {
  return new Map(
    restsOn.flatMap((name) => {
      const type = place.typeOf(name)
      return type === undefined ? [] : [[name, type] as const]
    }),
  )
}

export function personalOf(draft: Draft): readonly string[] {
  return [...draft.columns].flatMap(([name, { personal }]) => (personal === true ? [name] : []))
}

export function without(draft: Draft, isRemoved: (said: Said) => boolean): Draft {
  const kept = (said: Said | null): Said | null => (said !== null && isRemoved(said) ? null : said)
  return {
    summary: kept(draft.summary),
    examples: kept(draft.examples),
    statements: draft.statements.filter((said) => !isRemoved(said)),
    columns: new Map(
      [...draft.columns]
        .map(([name, column]) => [name, { ...column, said: kept(column.said) }] as const)
        .filter(([, { said, personal }]) => said !== null || personal !== null),
    ),
  }
}
