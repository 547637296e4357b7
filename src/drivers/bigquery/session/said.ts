// What BigQuery says of a query in a dry run, which has read no data: its own words pass, less positions (they are the
// printed text's) and names of ours. A text that names what the printed query does not is not passed: an error within a
// view, say, names the tables under it.
import { AppError } from '../../../errors.ts'
import type { BigQueryQuery } from '../query.ts'
import { overCost } from './cost.ts'
import { accessFailure, failure, queryFailure, schemaStale } from './failure.ts'
import { Refused } from './refused.ts'

const MESSAGE_MAX = 1_000
const QUIET = 'BigQuery refuses the query.'

/** What a dry run, or what came before it, threw, as an AppError. */
export function dryRunFailure(error: unknown, query: BigQueryQuery, bytesMax: number): AppError {
  const access = accessFailure(error)
  if (access !== null) return access
  if (!(error instanceof Refused)) return failure(error)
  if (error.reason === 'bytesBilledLimitExceeded') return overCost(bytesIn(error.said), bytesMax, error)
  return queryFailure(error) ?? refusedText(error, query)
}

/** BigQuery says how many bytes a query would need. */
export function bytesIn(said: string): number | null {
  const digits = /(\d{1,15}) or higher required/.exec(said)?.[1]
  return digits === undefined ? null : Number(digits)
}

function refusedText(refused: Refused, query: BigQueryQuery): AppError {
  const said = withoutPositions(refused.said)
  const alias = escaped(query.alias)
  if (new RegExp(`not found inside ${alias}\\b|in ${alias}\\b.*not found`, 'i').test(said)) return schemaStale(refused)
  const column = columnIn(said)
  // A name that the query does not hold, or that is told of a view, is one within it.
  if (column !== null && (!holds(query, column) || /\bfailed to parse view\b/i.test(said)))
    return new AppError('QUERY_FAILED', QUIET, { cause: refused })
  if (column !== null) return hiddenColumn(namedBack(column, query), said, query, refused)
  const message = passed(said, query)
  const isSyntax = /^Syntax error\b/i.test(said)
  const hint = query.hasStar && UNEQUAL.test(said) ? { hint: SHRUNK } : {}
  return new AppError(isSyntax ? 'INVALID_QUERY' : 'QUERY_FAILED', message, { extra: hint, cause: refused })
}

/** Branches of UNION and its like that do not fit each other, and a list that nothing is left of. */
const UNEQUAL =
  /\bmismatched column count\b|^Column \d+ in (?:UNION|INTERSECT|EXCEPT)\b.*\bincompatible types\b|\bmust have (?:only|exactly) one (?:output )?column\b|\bexpands to zero columns\b/i
const SHRUNK =
  'A star stands for the exposed columns only, which may be fewer than a table has: name the columns you want in its place.'

const NAME = '(`[^`]+`|[^\\s;,]+)'
const NO_COLUMN = [
  `^Unrecognized name: ${NAME}`,
  `^Name ${NAME} not found inside`,
  `^Column ${NAME} in SELECT \\* (?:EXCEPT|REPLACE) list does not exist`,
  `^Column ${NAME} in USING clause not found`,
  `^Column name ${NAME} not found`,
].map((pattern) => new RegExp(pattern, 'i'))

/** The column that BigQuery does not find: hidden and non-existing ones are the same to it. */
function columnIn(said: string): string | null {
  for (const pattern of NO_COLUMN) {
    const name = pattern.exec(said)?.[1]
    if (name !== undefined) return name.replace(/^`|`$/g, '')
  }
  return null
}

function hiddenColumn(name: string, said: string, query: BigQueryQuery, cause: Refused): AppError {
  const meant = /Did you mean (`[^`]+`|\w+)\?/i.exec(said)?.[1]
  const hint =
    meant === undefined || meant.includes(query.alias)
      ? 'Use a column that GET …/schema lists.'
      : `Use a column that GET …/schema lists: ${namedBack(meant.replace(/`/g, ''), query)}, say.`
  return new AppError('QUERY_DENIED', `column ${name} does not exist or is not exposed`, {
    extra: { blocked: { kind: 'column', name }, hint },
    cause,
  })
}

function namedBack(name: string, query: BigQueryQuery): string {
  return query.names.get(name) ?? name
}

function withoutPositions(said: string): string {
  return said.replace(/ ?(?:at )?\[(?:at )?\d+:\d+\]/g, '').trim()
}

/** The text, or a sentence of ours where it says more than the query does. */
function passed(said: string, query: BigQueryQuery): string {
  if (/without a filter over column/i.test(said)) {
    return 'BigQuery reads a table of this query only with a filter on the column that it is partitioned by.'
  }
  if (/\bview\b/i.test(said)) return 'BigQuery refuses the query: a view of it may no longer work.'
  const plain = said.replace(/[^.]*https?:\/\/\S+/g, '').trim()
  // a.b, p:d.t, and what stands in quotes or backquotes.
  const named = plain.match(/[A-Za-z_][\w-]*(?:[.:][\w*-]+)+|'[^']*'|"[^"]*"|`[^`]*`/g) ?? []
  if (!named.every((name) => holds(query, name))) return QUIET
  let message = plain
  for (const [ours, theirs] of query.names) message = message.replaceAll(ours, theirs)
  message = message.replace(new RegExp(`\\b${escaped(query.alias)}\\w*\\.?`, 'g'), '').replace(/  +/g, ' ')
  return message === '' || message.length > MESSAGE_MAX ? QUIET : message
}

/** Whether the printed query holds the name, and not only as a part of a longer one. */
function holds(query: BigQueryQuery, name: string): boolean {
  const whole = new RegExp(`(?<![\\p{L}\\p{N}_])${escaped(withoutQuotes(name))}(?![\\p{L}\\p{N}_])`, 'u')
  return whole.test(withoutQuotes(query.text))
}

function withoutQuotes(text: string): string {
  return text.replace(/[`'"]/g, '').replace(/[:.]/g, '.').toLowerCase()
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}
