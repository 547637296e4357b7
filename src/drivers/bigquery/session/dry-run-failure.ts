// Converts the errors of a dry run. A dry run reads no data, so the caller may see BigQuery's own message, with
// changes. Positions are removed, because they refer to the printed SQL. Generated names are replaced by the caller's
// names, or removed. A message that names something outside the printed query is replaced as a whole: for example, an
// error inside a view names the tables that the view reads.
import { AppError, type Code } from '../../../errors.ts'
import type { BigQueryQuery } from '../confined-query.ts'
import { overCost } from './cost-refusal.ts'
import { failureHint, TRY } from './failure-hint.ts'
import { placeIn, withoutPositions } from './message-position.ts'
import { accessFailure, failure, queryFailure, schemaStale } from './failure.ts'
import { ErrorResponse } from './error-response.ts'

const MESSAGE_MAX = 1_000
/**
 * Only this many different names of a message are searched for in the printed SQL. A message with more names is not
 * shown.
 */
const NAMES_MAX = 20
const NO_TEXT = 'BigQuery refuses the query.'

export function dryRunFailure(error: unknown, query: BigQueryQuery, bytesMax: number): AppError {
  const access = accessFailure(error)
  if (access !== null) return access
  if (!(error instanceof ErrorResponse)) return failure(error)
  if (error.reason === 'bytesBilledLimitExceeded') return overCost(bytesIn(error.googleText), bytesMax, error)
  return queryFailure(error) ?? refusedText(error, query)
}

/** Returns how many bytes the query would need, by BigQuery's message. Returns null if the message does not say so. */
export function bytesIn(googleText: string): number | null {
  const digits = /(\d{1,15}) or higher required/.exec(googleText)?.[1]
  return digits === undefined ? null : Number(digits)
}

function refusedText(refused: ErrorResponse, query: BigQueryQuery): AppError {
  const googleText = withoutPositions(refused.googleText)
  const alias = escaped(query.alias)
  if (new RegExp(`not found inside ${alias}\\b|in ${alias}\\b.*not found`, 'i').test(googleText))
    return schemaStale(refused)
  // If the message is about a view, its positions and names may come from the view's text.
  const isOfView = /\bview\b/i.test(googleText)
  const at = isOfView ? null : placeIn(refused.googleText, query)
  const names = new PrintedNames(query)
  const column = columnIn(googleText)
  const withoutText = (code: Code) =>
    new AppError(code, NO_TEXT, { extra: { hint: TRY, ...positionOf(at) }, cause: refused })
  if (column !== null && (!names.hold(column) || /\bfailed to parse view\b/i.test(googleText)))
    return withoutText('QUERY_FAILED')
  if (column !== null) return hiddenColumn(callerName(column, query), at, query, refused)
  const message = messageFor(googleText, query, names)
  const code = /^Syntax error\b/i.test(googleText) ? 'INVALID_QUERY' : 'QUERY_FAILED'
  if (message === NO_TEXT) return withoutText(code)
  const extra = { hint: failureHint(googleText, query.hasStar), ...positionOf(at), ...columnNamed(message, query) }
  return new AppError(code, message, { extra, cause: refused })
}

function positionOf(at: number | null): { readonly position?: number } {
  return at === null ? {} : { position: at }
}

/** Returns the column of the message, if the query contains its name. */
function columnNamed(message: string, query: BigQueryQuery): { readonly column?: string } {
  const name = /\b[Cc]olumn(?: name)? `?([A-Za-z_]\w*)`?/.exec(message)?.[1]
  return name === undefined || !query.text.toLowerCase().includes(name.toLowerCase()) ? {} : { column: name }
}

const NAME = '(`[^`]+`|[^\\s;,]+)'
const NO_COLUMN = [
  `^Unrecognized name: ${NAME}`,
  `^Name ${NAME} not found inside`,
  `^Column ${NAME} in SELECT \\* (?:EXCEPT|REPLACE) list does not exist`,
  `^Column ${NAME} in USING clause not found`,
  `^Column name ${NAME} not found`,
].map((pattern) => new RegExp(pattern, 'i'))

/** Returns the column that BigQuery does not find. A hidden column and a missing column look the same to BigQuery. */
function columnIn(googleText: string): string | null {
  for (const pattern of NO_COLUMN) {
    const name = pattern.exec(googleText)?.[1]
    if (name !== undefined) return name.replace(/^`|`$/g, '')
  }
  return null
}

function hiddenColumn(name: string, at: number | null, query: BigQueryQuery, cause: ErrorResponse): AppError {
  return new AppError('QUERY_DENIED', `column ${name} does not exist or is not exposed`, {
    extra: { blocked: { kind: 'column', name }, hint: query.columnHint(name, at ?? -1), ...positionOf(at) },
    cause,
  })
}

function callerName(name: string, query: BigQueryQuery): string {
  return query.names.get(name) ?? name
}

/**
 * Returns BigQuery's message, or a sentence of our own if the message is about a view or a missing filter, is too long,
 * or contains a name that the query does not contain.
 */
function messageFor(googleText: string, query: BigQueryQuery, names: PrintedNames): string {
  if (/without a filter over column/i.test(googleText)) {
    return 'BigQuery reads a table of this query only with a filter on its partitioning column.'
  }
  if (/\bview\b/i.test(googleText)) return 'BigQuery refuses the query: one of its views may no longer work.'
  if (googleText.length > MESSAGE_MAX) return NO_TEXT
  const plain = googleText.replace(/[^.]*https?:\/\/\S+/g, '').trim()
  // Matches a.b, p:d.t, and text in quotes or backquotes.
  const named = new Set(plain.match(/[A-Za-z_][\w-]*(?:[.:][\w*-]+)+|'[^']*'|"[^"]*"|`[^`]*`/g) ?? [])
  if (named.size > NAMES_MAX || ![...named].every((name) => names.hold(name))) return NO_TEXT
  let message = plain
  for (const [ours, theirs] of query.names) message = message.replaceAll(ours, theirs)
  message = message.replace(new RegExp(`\\b${escaped(query.alias)}\\w*\\.?`, 'g'), '').replace(/  +/g, ' ')
  return message === '' ? NO_TEXT : message
}

/**
 * Searches the printed SQL for names. The SQL may have a million characters and the message many names, so the SQL is
 * prepared only once.
 */
class PrintedNames {
  readonly #query: BigQueryQuery
  #text: string | null = null

  constructor(query: BigQueryQuery) {
    this.#query = query
  }

  /** True if the printed SQL contains this name, and not only as a part of a longer name. Ignores case and quotes. */
  hold(name: string): boolean {
    const text = (this.#text ??= withoutQuotes(this.#query.text))
    const wanted = withoutQuotes(name)
    if (wanted === '') return true
    for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) {
      if (!isOfName(text, at - 1) && !isOfName(text, at + wanted.length)) return true
    }
    return false
  }
}

function isOfName(text: string, at: number): boolean {
  const sign = text[at]
  return sign !== undefined && /[\p{L}\p{N}_]/u.test(sign)
}

function withoutQuotes(text: string): string {
  return text.replace(/[`'"]/g, '').replaceAll(':', '.').toLowerCase()
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}
