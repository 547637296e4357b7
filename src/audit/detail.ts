// Pure: what of a row of the audit stands together in one JSON column: who it was by name, what was changed, why it was
// refused, what a query read. Most of it does not apply to most rows, and what does not is left out.
import { z } from 'zod'
import { Changes, Target, type Changed } from './changes.ts'

/** Names as they were when the row was written. */
export interface Who {
  /** Of the account. */
  readonly name?: string | undefined
  readonly keyName?: string | undefined
}

/** Why a call was refused, in the words its caller was told. */
export interface Reason {
  readonly error?: string | undefined
  readonly hint?: string | undefined
  /** From 0, in UTF-16 units of the query. */
  readonly position?: number | undefined
  /** Of a refusal by cost. */
  readonly estimate?: number | undefined
  readonly limit?: number | undefined
}

/** What is said of a call beside how it ended. */
export interface Told extends Partial<Changed>, Reason {
  /** That a query read, each once. */
  readonly tables?: readonly { readonly schema: string; readonly table: string }[] | undefined
  /** Of a query, as JSON. */
  readonly params?: string | undefined
}

/** As the column holds it. Short names: it is written for every query. */
const Detail = z.object({
  by: z.string().optional(),
  key: z.string().optional(),
  target: Target.optional(),
  changes: Changes.optional(),
  error: z.string().optional(),
  hint: z.string().optional(),
  position: z.number().optional(),
  estimate: z.number().optional(),
  limit: z.number().optional(),
  tables: z.array(z.tuple([z.string(), z.string()])).optional(),
  params: z.unknown().optional(),
})
export type Detail = z.infer<typeof Detail>

/** A refusal says so much; what a database says may be longer. */
const SENTENCE_MAX = 2_000
const TABLES_MAX = 100

type Tables = NonNullable<Told['tables']>
/** What is said of an answered query, by the tables that its shape reads and for the caller who asked it last. */
const answered = new WeakMap<Tables, { readonly who: Who; readonly text: string | null }>()

/** Null where there is nothing to say. `params` goes in as it is: it is JSON already, and may be long. */
export function writeDetail(who: Who, told: Told): string | null {
  const { tables, params, target, error, hint } = told
  // The hot path: all answered calls of one shape by one caller say the same.
  if (tables === undefined || params !== undefined || (target ?? error ?? hint) !== undefined) return written(who, told)
  const known = answered.get(tables)
  if (known?.who === who) return known.text
  const text = written(who, { tables })
  answered.set(tables, { who, text })
  return text
}

function written(who: Who, told: Told): string | null {
  const { target, changes, error, hint, position, estimate, limit, tables, params } = told
  const json = JSON.stringify({
    by: who.name,
    key: who.keyName,
    target,
    changes: changes === undefined || Object.keys(changes).length === 0 ? undefined : changes,
    error: error && short(error),
    hint: hint && short(hint),
    position: Number.isInteger(position) ? positive(position) : undefined,
    estimate: positive(estimate),
    limit: positive(limit),
    tables: tables && pairs(tables),
  } satisfies Record<Exclude<keyof Detail, 'params'>, unknown>)
  const all = params === undefined ? json : `${json.slice(0, -1)}${json === '{}' ? '' : ','}"params":${params}}`
  return all === '{}' ? null : all
}

/** Throws a ZodError for a damaged store. */
export function readDetail(json: string | null): Detail {
  return json === null ? {} : Detail.parse(JSON.parse(json))
}

/** What is no such number is left out: whoever reads the row would stumble over it for as long as it is kept. */
function positive(number: number | undefined): number | undefined {
  return number !== undefined && Number.isFinite(number) && number >= 0 ? number : undefined
}

function pairs(tables: readonly { readonly schema: string; readonly table: string }[]): [string, string][] {
  return tables.slice(0, TABLES_MAX).map(({ schema, table }) => [schema, table])
}

function short(text: string): string {
  return text.length > SENTENCE_MAX ? `${text.slice(0, SENTENCE_MAX).toWellFormed()}…` : text
}
