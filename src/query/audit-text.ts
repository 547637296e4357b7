// Decides what the audit stores about a query. Literals may be personal data, so a team can have them redacted. Then
// the driver removes them from the query text, or if it cannot, the audit stores no query text.
import type { AuditEntry } from '../audit/make-rows.ts'
import type { Blocked, Driver, QueryBody } from '../drivers/driver.ts'
import type { Reason } from '../audit/row-detail.ts'
import type { Code } from '../errors.ts'

/** What is known about a query when it ends. */
export interface QueryTrail {
  readonly query: string | null
  readonly params?: QueryBody['params'] | undefined
  readonly printed: string | null
  /** The tables that the query reads. Undefined if the query ended before they were known. */
  readonly tables?: ReturnType<Driver['reads']> | undefined
  /** True if the query was parsed, so that the positions of its literals are known. */
  readonly isRead: boolean
  readonly blocked?: Blocked | undefined
  readonly refusal?: { readonly code: Code; readonly reason: Reason } | null | undefined
}

/** For these refusals, `blocked.name` is a term of the guard, such as `plan cost`, and never a word of the query. */
const OWN_WORDS: ReadonlySet<string> = new Set(['cost', 'limit', 'statement'])

type AuditedText = Pick<AuditEntry, 'query' | 'printed' | 'redacted' | 'blocked' | 'params' | 'tables' | keyof Reason>

export function auditText(driver: Pick<Driver, 'redacted'>, trail: QueryTrail, redacts: boolean): AuditedText {
  const { query, printed, params, tables, isRead, blocked, refusal } = trail
  if (!redacts) return { ...refusal?.reason, query, printed, tables, blocked, params: params?.json }
  const without = (text: string | null) => (text === null || !isRead ? null : (driver.redacted?.(text) ?? null))
  const redacted = without(query)
  return {
    query: redacted,
    printed: without(printed),
    tables,
    redacted: query !== null,
    blocked: blocked === undefined ? undefined : nameless(blocked, redacted),
    ...(refusal && withoutQuotes(refusal, blocked, withParams(query, params), redacted)),
  }
}

/** Removes the refused name unless the redacted query still contains it, because the name may have been a literal. */
function nameless(blocked: Blocked, redacted: string | null): Blocked {
  const isName = OWN_WORDS.has(blocked.kind) || redacted?.toLowerCase().includes(blocked.name.toLowerCase()) === true
  return isName ? blocked : { kind: blocked.kind, name: '?' }
}

/** Returns the query text followed by the parameter values, which all count as literals. */
function withParams(query: string | null, params: QueryTrail['params']): string | null {
  return query === null || params === undefined ? query : `${query}\n${params.json}`
}

/** The error texts of these codes never quote a query. */
const OWN_SENTENCES: ReadonlySet<Code> = new Set<Code>([
  'NOT_CONNECTED',
  'DATASOURCE_DISABLED',
  'RATE_LIMITED',
  'INTERNAL',
  'DATASOURCE_UNAVAILABLE',
  'OVERLOADED',
  'STORE_UNAVAILABLE',
  'QUERY_TIMEOUT',
])
/**
 * The error texts of these codes quote names, which may have been literals (see quotesOf()), but no values. Error texts
 * of codes in neither list may quote any value, so the audit does not store them.
 */
const NAMING: ReadonlySet<Code> = new Set<Code>(['QUERY_DENIED', 'SCHEMA_STALE'])

/** Leaves out the error text and the hint if they may contain a literal of the query. */
function withoutQuotes(
  { code, reason }: NonNullable<QueryTrail['refusal']>,
  blocked: Blocked | undefined,
  source: string | null,
  redacted: string | null,
): Reason {
  const { error, hint, ...numbers } = reason
  if (OWN_SENTENCES.has(code)) return reason
  const isOwn = blocked !== undefined && OWN_WORDS.has(blocked.kind)
  const isKnown = isOwn || (redacted !== null && source !== null && !isWrittenOtherwise(source))
  if (!NAMING.has(code) || source === null || !isKnown) return numbers
  const quotes = quotesOf(source, redacted ?? '')
  return {
    ...numbers,
    ...(error !== undefined && !quotes(error) && { error }),
    ...(hint !== undefined && !quotes(hint) && { hint }),
  }
}

/**
 * Returns true if the value of a literal may differ from its text, because of an escape sequence or several parts. An
 * error text may then quote a value that the query text does not contain.
 */
function isWrittenOtherwise(source: string): boolean {
  return source.includes('\\') || isContinued(source)
}

const BEHIND_QUOTE = /['"]\s*(?:--|$)/

/** Returns true if a string literal may continue on a later line. SQL concatenates literals across a line break. */
function isContinued(source: string): boolean {
  let endsInQuote = false
  for (const line of source.split(/[\r\n]/)) {
    const begin = line.trimStart()
    if (endsInQuote && /^['"]/.test(begin)) return true
    if (begin !== '' && !begin.startsWith('--')) endsInQuote = BEHIND_QUOTE.test(line)
  }
  return false
}

/** An error text with these words reveals nothing about the query. */
const GRAMMAR: ReadonlySet<string> = new Set(
  `a an and are as at be but by can column columns does exist exposed for from function has have in is it may more no not of
  on one only or over table tables than that the there this to use which with`.split(/\s+/),
)
const WORD = /[\p{L}\p{N}_]+/gu
/**
 * A literal may be a part of a longer word. Words that are shorter than this and without digits are found in longer
 * words by chance, so they count only as whole words.
 */
const PART_FROM = 4

/** Returns a function that returns true if a sentence has a word that the query has only in a literal or comment. */
function quotesOf(query: string, redacted: string): (sentence: string) => boolean {
  const [source, rest] = [query, redacted].map((text) => {
    const lower = text.toLowerCase()
    const words = new Set(lower.match(WORD))
    return (word: string) =>
      words.has(word) || ((word.length >= PART_FROM || /\p{N}/u.test(word)) && lower.includes(word))
  })
  return (sentence) =>
    (sentence.toLowerCase().match(WORD) ?? []).some(
      (word) => !GRAMMAR.has(word) && source?.(word) === true && rest?.(word) !== true,
    )
}
