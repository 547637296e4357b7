// Translates errors of PostgreSQL for callers. DETAIL, HINT and CONTEXT are never shown. A message is shown only for
// some codes, and only if the printed text contains all names in it.
import { AppError } from '../../../errors.ts'
import { readOverBound, type OverBound } from '../exceeded-bound-marker.ts'
import { adviceFor, adviceForBound, mayShowMessage } from './failure-hint.ts'
import { DatabaseError } from './protocol-messages.ts'
import { spatialFailure } from './spatial-failure.ts'
import { LostConnection } from './wire.ts'

export interface FailedQuery {
  readonly text: string
  readonly names: ReadonlyMap<string, string>
}

const LOST = 'The connection to the database was lost.'

// Errors of class 22. The database's messages contain the value, so they are not shown.
const DATA_SENTENCES: Readonly<Record<string, string>> = {
  '22001': 'A string is too long for its type.',
  '22003': 'A number is out of the range of its type.',
  '22004': 'A null value is not allowed here.',
  '22007': 'A string is not a valid date or time.',
  '22008': 'A date or time is out of range.',
  '22009': 'A time zone displacement is not valid.',
  '22011': 'A substring has a negative length.',
  '22012': 'Division by zero.',
  '22013': 'A window frame’s preceding or following size is not valid.',
  '22014': 'The argument of ntile must be greater than zero.',
  '22016': 'The argument of nth_value must be greater than zero.',
  '2201B': 'A regular expression is not valid.',
  '2201E': 'The argument of a logarithm is zero or negative.',
  '2201F': 'A power or root is not defined for its arguments.',
  '2201G': 'The arguments of width_bucket are not valid.',
  '2201W': 'LIMIT must not be negative.',
  '2201X': 'OFFSET must not be negative.',
  '2202E': 'An array subscript is wrong.',
  '2202G': 'A TABLESAMPLE REPEATABLE value is not valid.',
  '2202H': 'A TABLESAMPLE argument is not valid.',
  '22018': 'A string is not a valid value of the type it is cast to.',
  '22019': 'An escape character is not valid.',
  '22021': 'A string contains a character that the encoding does not have.',
  '22023': 'An argument has a value that is not valid.',
  '22024': 'A string is not terminated.',
  '22025': 'An escape sequence is not valid.',
  '22026': 'A string has the wrong length for its type.',
  '22030': 'A JSON object has a key twice.',
  '22032': 'A string is not valid JSON.',
  '22033': 'A JSON subscript is not valid.',
  '22034': 'A JSON path finds more than one item.',
  '22035': 'A JSON path finds no item.',
  '22036': 'A JSON item is not a number.',
  '22038': 'A JSON path needs a single item.',
  '22039': 'A JSON path finds no array.',
  '2203A': 'A JSON path finds no member of that name.',
  '2203B': 'A JSON path finds no number.',
  '2203C': 'A JSON path finds no object.',
  '2203F': 'A JSON path finds no scalar.',
  '2203G': 'A JSON value cannot be cast to that type.',
  '22P01': 'A floating-point number is out of range.',
  '22P02': 'A string is not a valid value of the type it is cast to.',
  '22P03': 'A binary value is not valid.',
  '22P05': 'A character has no equivalent in the encoding.',
  '2200F': 'A string must not be empty here.',
  '2200H': 'A sequence generator has reached its limit.',
  '2200L': 'A text is not a valid XML document.',
  '2200M': 'A text is not a valid XML document.',
  '2200N': 'A text is not valid XML content.',
}

const CODE_SENTENCES: Readonly<Record<string, string>> = {
  '0A000': 'The database does not support something that this query uses.',
  '21000': 'A sub-select used as a value gives more than one row.',
  '25006': 'The query tries to change data; it runs read-only.',
  '42704': 'A collation, a text search configuration or a JSON path variable that the query names does not exist.',
  '40001': 'The database gave the query up because of concurrent changes; try again.',
  '40P01': 'The database gave the query up because of a deadlock; try again.',
  '42501': 'The login of this datasource may not read something this query needs.',
  '42P08': 'A parameter has different types in different places. Set its type with {type, value} or $1::type.',
  '42P18': 'The type of a parameter is not known. Set it with {type, value} or $1::type.',
  '55P03': 'Something this query reads is locked by another session; try again.',
  '57014': 'The query was cancelled in the database.',
}

const CLASS_SENTENCES: Readonly<Record<string, string>> = {
  '22': 'A value does not fit what the query does with it.',
  '42': 'The database refuses the query in this form.',
  '53': 'The database does not have enough resources for this query.',
  '54': 'The query exceeds a limit of the database.',
  '58': 'The database had a system error.',
  HV: 'A foreign server behind a table of this query failed.',
  XX: 'The database had an internal error.',
}

/** Returns the AppError for an error of a query, which becomes the cause. Returns an AppError unchanged. */
export function failure(error: unknown, query?: FailedQuery, position: number | null = null): AppError {
  if (error instanceof AppError) return error
  if (error instanceof LostConnection) return new AppError('DATASOURCE_UNAVAILABLE', LOST, { cause: error })
  if (!(error instanceof DatabaseError)) return new AppError('INTERNAL', 'Something went wrong here.', { cause: error })
  const group = error.code.slice(0, 2)
  if (error.code === '25P03' || error.code === '25P04') return timedOut(error)
  if (group === '08' || (group === '57' && error.code !== '57014')) {
    return new AppError('DATASOURCE_UNAVAILABLE', LOST, { cause: error })
  }
  const bound = error.inner ? undefined : readOverBound(error.code, error.message)
  if (bound !== undefined) return overBound(bound, error)
  const spatial = error.inner || !query ? undefined : spatialFailure(error.code, error.message, query.text)
  const message = spatial?.message ?? sentence(error, group, query)
  const column = COLUMN.exec(message)?.[1]
  const extra = {
    hint: spatial?.hint ?? adviceFor(error.code, error.inner ? '' : error.message),
    ...(column !== undefined && { column }),
    ...(position !== null && { position }),
  }
  return new AppError('QUERY_FAILED', message, { cause: error, extra })
}

/** Returns the error for a bound that the printed text checked. */
function overBound({ what, most, found }: OverBound, cause: DatabaseError): AppError {
  const message = `${what} would exceed a size limit of this service: the size is ${found}, the limit is ${most}.`
  return new AppError('QUERY_FAILED', message, { cause, extra: { hint: adviceForBound(what) } })
}

const COLUMN = /\bcolumn (?:reference )?"([^"]+)"/

/** Returns whether the server cancelled the query. */
export function isCancelled({ cause }: AppError): boolean {
  return cause instanceof DatabaseError && cause.code === '57014'
}

/** Returns the error for a query that the server ended after its timeout. */
export function timedOut(cause?: unknown): AppError {
  return new AppError('QUERY_TIMEOUT', 'The query took too long and was cancelled in the database.', { cause })
}

/** Returns the error for a table or column that was dropped or replaced since introspection. */
export function schemaStale(cause?: unknown): AppError {
  const message =
    'The database has changed since it was introspected: a table or column of this query was removed or replaced. An administrator must introspect it again.'
  return new AppError('SCHEMA_STALE', message, { cause })
}

/** Returns the database's message if a caller may see it, otherwise a sentence of the service. */
function sentence(error: DatabaseError, group: string, query: FailedQuery | undefined): string {
  const fixed = DATA_SENTENCES[error.code] ?? CODE_SENTENCES[error.code]
  if (fixed !== undefined) return fixed
  if (mayShowMessage(error.code) && query !== undefined && !error.inner) {
    const message = mapped(error.message, query)
    if (message !== null) return message
  }
  return CLASS_SENTENCES[group] ?? 'The database failed the query.'
}

/**
 * Replaces generated aliases in the message by the caller's names. Returns null if the message quotes a name that is
 * not in the printed text: it comes from the server, for example a file, a role, or a table that a policy reads.
 */
function mapped(message: string, query: FailedQuery): string | null {
  if (message.length > MESSAGE_MAX) return null
  const known = namesIn(query.text)
  for (const [, quoted = ''] of message.matchAll(/"([^"]*)"/g)) {
    const dot = quoted.indexOf('.')
    const isKnown = known.has(quoted) || (known.has(quoted.slice(0, dot)) && known.has(quoted.slice(dot + 1)))
    if (!isKnown) return null
  }
  return message.replaceAll('pg_catalog.', '').replaceAll(ALIAS, (ours) => query.names.get(ours) ?? ours)
}

const MESSAGE_MAX = 1_000
/** A generated alias. */
const ALIAS = /(?<!\w)_*[tc]\d+(?!\w)/g
/** The literals and names of a printed text (quote.ts). */
const QUOTED = /E'(?:[^'\\]|''|\\[^])*'|'(?:[^']|'')*'|"((?:[^"]|"")*)"/g

function namesIn(text: string): ReadonlySet<string> {
  const names = new Set<string>()
  for (const [, name] of text.matchAll(QUOTED)) if (name !== undefined) names.add(name.replaceAll('""', '"'))
  return names
}
