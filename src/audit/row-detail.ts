// Reads and writes the `detail` column of an audit row: a JSON object with the fields that only some rows have.
import { z } from 'zod'
import { Target } from '../contract/audit-schemas.ts'
import { Changes, type Changed } from './recorded-changes.ts'

export interface Who {
  readonly name?: string | undefined
  readonly keyName?: string | undefined
  /** The name of the agent's client. If set, `key_id` of the row is the id of a grant. */
  readonly clientName?: string | undefined
}

export interface Reason {
  readonly error?: string | undefined
  readonly hint?: string | undefined
  /** Counted in UTF-16 code units of the query, from 0. */
  readonly position?: number | undefined
  /** Set if the query was refused for its cost. */
  readonly estimate?: number | undefined
  readonly limit?: number | undefined
}

export interface CallDetail extends Partial<Changed>, Reason {
  readonly tables?: readonly { readonly schema: string; readonly table: string }[] | undefined
  readonly params?: string | undefined
}

/** Every query writes this JSON, so the field names are short. */
const Detail = z.object({
  by: z.string().optional(),
  key: z.string().optional(),
  grant: z.string().optional(),
  target: Target.optional(),
  changes: Changes.optional(),
  error: z.string().optional(),
  hint: z.string().optional(),
  position: z.number().optional(),
  estimate: z.number().optional(),
  limit: z.number().optional(),
  tables: z.array(z.tuple([z.string(), z.string()])).optional(),
  params: z.unknown().optional(),
  req: z.string().optional(),
})
export type Detail = z.infer<typeof Detail>

/** Longer texts are truncated. Error texts of databases may be long. */
const SENTENCE_MAX = 2_000
const TABLES_MAX = 100

type Tables = NonNullable<CallDetail['tables']>
/** For each list of tables, the last detail that was written. Queries often share the same list object. */
const answered = new WeakMap<Tables, { readonly who: Who; readonly text: string | null }>()

/** Returns null if there is nothing to store. `requestId` must not contain characters that JSON escapes. */
export function writeDetail(who: Who, detail: CallDetail, requestId?: string): string | null {
  const text = detailOf(who, detail)
  if (requestId === undefined) return text
  return text === null ? `{"req":"${requestId}"}` : `${text.slice(0, -1)},"req":"${requestId}"}`
}

/** `params` is JSON already, so it is inserted without parsing. */
function detailOf(who: Who, detail: CallDetail): string | null {
  const { tables, params, target, error, hint } = detail
  // A caller often reads the same tables again, without parameters. Then the detail is the same.
  if (tables === undefined || params !== undefined || (target ?? error ?? hint) !== undefined)
    return written(who, detail)
  const known = answered.get(tables)
  if (known?.who === who) return known.text
  const text = written(who, { tables })
  answered.set(tables, { who, text })
  return text
}

function written(who: Who, detail: CallDetail): string | null {
  const { target, changes, error, hint, position, estimate, limit, tables, params } = detail
  const json = JSON.stringify({
    by: who.name,
    key: who.keyName,
    grant: who.clientName,
    target,
    changes: changes === undefined || Object.keys(changes).length === 0 ? undefined : changes,
    error: error && short(error),
    hint: hint && short(hint),
    position: Number.isInteger(position) ? positive(position) : undefined,
    estimate: positive(estimate),
    limit: positive(limit),
    tables: tables && pairs(tables),
  } satisfies Record<Exclude<keyof Detail, 'params' | 'req'>, unknown>)
  const all = params === undefined ? json : `${json.slice(0, -1)}${json === '{}' ? '' : ','}"params":${params}}`
  return all === '{}' ? null : all
}

export function readDetail(json: string | null): Detail {
  return json === null ? {} : Detail.parse(JSON.parse(json))
}

/** Returns undefined for NaN, Infinity and negative numbers. With such a value, reading the row would fail. */
function positive(number: number | undefined): number | undefined {
  return number !== undefined && Number.isFinite(number) && number >= 0 ? number : undefined
}

function pairs(tables: readonly { readonly schema: string; readonly table: string }[]): [string, string][] {
  return tables.slice(0, TABLES_MAX).map(({ schema, table }) => [schema, table])
}

function short(text: string): string {
  return text.length > SENTENCE_MAX ? `${text.slice(0, SENTENCE_MAX).toWellFormed()}…` : text
}
