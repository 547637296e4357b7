// Finds the function that a call means: a listed function of PostgreSQL or of a known extension. It is printed with its
// schema, so that a user's function cannot be called instead.
import type { CapturedExtension } from '../../captured-facts.ts'
import { FROM_ROW_TYPE, FUNCTIONS, OUT_COLUMNS, SINCE } from './allowed-functions.ts'
import type { Struct } from './allowed-nodes.ts'
import type { Exposed } from '../exposed.ts'
import { functionHint } from './hints.ts'
import { FUNCTIONS_ELSEWHERE } from './other-dialects.ts'
import { refusedFunction, type Refusal } from '../refusal.ts'
import type { SqlType } from '../walk/from-items.ts'
import { extensionOf, fieldsOf, isSpatial } from './type-names.ts'
import { EXTENSION_FUNCTIONS, EXTENSION_OUT_COLUMNS, EXTENSION_SINCE } from './types-and-extensions.ts'

export interface Found {
  readonly schema: string
  /** The extension that the function belongs to. Undefined for PostgreSQL's own functions. */
  readonly extension?: string
  readonly out: readonly string[]
}

/** Returns false if no function of this name may be called. Otherwise, findFunction() decides. */
export function mayBeCalled({ capture }: Exposed, name: string): boolean {
  if (FUNCTIONS.has(name) || name === 'ts_rewrite') return true
  return capture.extensions.some((extension) => extension.trusted && extension.functions.includes(name))
}

/** Returns the schema and the output columns of a function, by its name and argument types. Throws Refusal. */
export function findFunction(
  exposed: Exposed,
  written: readonly string[],
  types: readonly (SqlType | null)[],
  at: number | undefined,
): Found {
  const name = written.at(-1) ?? ''
  const schema = written.length > 1 ? written.at(-2) : undefined
  if (written.length > 2) throw unknownFunction(exposed, written, at)
  if (schema !== 'pg_catalog') {
    const extension = ofExtension(exposed, schema, name, types, written, at)
    if (extension) return extension
  }
  if ((schema === undefined || schema === 'pg_catalog') && isListed(name, types.length)) {
    const since = SINCE.get(name) ?? SINCE.get(`${name}/${types.length}`)
    checkVersion(exposed, since, written, at)
    return { schema: 'pg_catalog', out: OUT_COLUMNS.get(name) ?? [] }
  }
  throw unknownFunction(exposed, written, at)
}

export function unknownFunction(exposed: Exposed, written: readonly string[], at: number | undefined): Refusal {
  return refusedFunction(written.join('.'), at, functionHint(exposed, written.at(-1) ?? ''))
}

/** Returns whether a function is listed. ts_rewrite with two arguments is not: it runs its second argument as SQL. */
function isListed(name: string, arity: number): boolean {
  return FUNCTIONS.has(name) || (name === 'ts_rewrite' && arity === 3)
}

function ofExtension(
  exposed: Exposed,
  schema: string | undefined,
  name: string,
  types: readonly (SqlType | null)[],
  written: readonly string[],
  at: number | undefined,
): Found | undefined {
  const owners = new Set(types.map((type) => extensionOf(exposed, type)))
  for (const extension of exposed.capture.extensions) {
    if (schema !== undefined && extension.schema !== schema) continue
    if (!extension.functions.includes(name)) continue
    // If PostgreSQL has a function of this name too, a call without a schema means the extension's function only for a
    // value of the extension's type.
    const isOwn = owners.has(extension.name)
    if (schema === undefined && !isOwn && FUNCTIONS.has(name)) continue
    if (!isCallable(extension, name)) {
      if (isOwn) throw unknownFunction(exposed, written, at)
      continue
    }
    checkVersion(exposed, EXTENSION_SINCE.get(`${extension.name}.${name}`), written, at)
    const out = EXTENSION_OUT_COLUMNS.get(`${extension.name}.${name}`) ?? []
    return { schema: extension.schema, extension: extension.name, out }
  }
  return undefined
}

/** Returns whether the function may be called, and no user's function of the same name could run instead. */
function isCallable(extension: CapturedExtension, name: string): boolean {
  return (
    extension.trusted &&
    !extension.shadowed.includes(name) &&
    EXTENSION_FUNCTIONS.get(extension.name)?.has(name) === true
  )
}

function checkVersion(
  exposed: Exposed,
  since: number | undefined,
  written: readonly string[],
  at: number | undefined,
): void {
  if (since === undefined || since <= exposed.major) return
  const name = written.at(-1) ?? ''
  const advice = FUNCTIONS_ELSEWHERE.get(name)
  const needs = `${name}() needs PostgreSQL ${since}, this server is ${exposed.major}`
  throw refusedFunction(written.join('.'), at, advice === undefined ? needs : `${needs}. ${advice}`)
}

const LIKE_FIRST: ReadonlySet<string> = new Set([
  ...['any_value', 'first_value', 'lag', 'last_value', 'lead', 'max', 'min', 'mode', 'nth_value'],
  ...['array_append', 'array_cat', 'array_remove', 'array_replace', 'array_reverse', 'array_sample', 'array_shuffle'],
  ...['array_sort', 'trim_array'],
])
/** Other functions whose result has the type of an argument, or is an array of it. */
const LIKE_ANY: ReadonlySet<string> = new Set(['array_fill', 'array_prepend', 'percentile_disc'])

/**
 * Returns what is known about the type of the result. Throws Refusal if the first argument defines the columns of the
 * result, but its type is unknown.
 */
export function resultType(
  exposed: Exposed,
  name: string,
  out: readonly string[],
  types: readonly (SqlType | null)[],
  node: Struct<'FuncCall'>,
): SqlType | null {
  if (out.length > 1)
    return { kind: 'row', known: 'always', columns: out.map((column) => ({ name: column, type: null })) }
  if (RETURNS_TSVECTOR.has(name)) return TSVECTOR
  // PostgreSQL converts the other arguments to a geometry too.
  const spatial = types.find((type) => isSpatial(exposed, type))
  if (spatial && (LIKE_FIRST.has(name) || LIKE_ANY.has(name)))
    return name.startsWith('array_') && spatial.kind !== 'array' ? { kind: 'array', of: spatial } : spatial
  const [first] = types
  if (!first) {
    if (FROM_ROW_TYPE.has(name)) throw refusedFunction(name, node.location, ROW_TYPE_HINT)
    return null
  }
  if (FROM_ROW_TYPE.has(name)) {
    if (!fieldsOf(exposed, first) || isSpatial(exposed, first))
      throw refusedFunction(name, node.location, ROW_TYPE_HINT)
    return first
  }
  if (name === 'array_agg') return first.kind === 'array' ? first : { kind: 'array', of: first }
  if (name === 'unnest') return unnested(first)
  return LIKE_FIRST.has(name) ? first : null
}

const TSVECTOR: SqlType = { kind: 'named', schema: 'pg_catalog', name: 'tsvector' }
const RETURNS_TSVECTOR: ReadonlySet<string> = new Set([
  ...['array_to_tsvector', 'json_to_tsvector', 'jsonb_to_tsvector', 'to_tsvector'],
  ...['setweight', 'strip', 'ts_delete', 'ts_filter'],
])

/** Returns the type of the rows of unnest(): the elements of an array, or the lexemes of a tsvector. */
function unnested(type: SqlType): SqlType | null {
  if (type.kind === 'array') return type.of
  if (type.kind !== 'named' || type.schema !== 'pg_catalog' || type.name !== 'tsvector') return null
  const columns = ['lexeme', 'positions', 'weights'].map((name) => ({ name, type: null }))
  return { kind: 'row', known: 'always', columns }
}

const ROW_TYPE_HINT =
  'The first argument must have a composite type: NULL::that_type. For plain columns use jsonb_to_record(…) AS t(a int, b text).'
