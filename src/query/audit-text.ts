// Pure: what of a query the audit keeps. Where the team has literals redacted, only what is told by names: the driver takes
// the literals out, and where it cannot, there is no text at all.
import type { AuditEntry } from '../audit/rows.ts'
import type { Blocked, Driver, QueryBody } from '../drivers/driver.ts'
import type { Reason } from '../audit/detail.ts'
import type { Code } from '../errors.ts'

/** What is known of a query when it has ended. */
export interface Told {
  readonly query: string | null
  readonly params?: QueryBody['params'] | undefined
  readonly printed: string | null
  /** That it reads, once that is known. */
  readonly tables?: ReturnType<Driver['reads']> | undefined
  /** It was parsed: only then is it known where its literals are. */
  readonly isRead: boolean
  readonly blocked?: Blocked | undefined
  /** Why it was refused; null where it was not, or nobody knows. */
  readonly refusal?: { readonly code: Code; readonly reason: Reason } | null | undefined
}

/** What is blocked by the guard's own words, whatever the query says. */
const OWN_WORDS: ReadonlySet<string> = new Set(['cost', 'limit', 'statement'])

type Kept = Pick<AuditEntry, 'query' | 'printed' | 'redacted' | 'blocked' | 'params' | 'tables' | keyof Reason>

export function auditText(driver: Pick<Driver, 'redacted'>, told: Told, redacts: boolean): Kept {
  const { query, printed, params, tables, isRead, blocked, refusal } = told
  if (!redacts) return { query, printed, tables, blocked, params: params?.json, ...refusal?.reason }
  const without = (text: string | null) => (text === null || !isRead ? null : (driver.redacted?.(text) ?? null))
  const kept = without(query)
  return {
    query: kept,
    printed: without(printed),
    tables,
    redacted: query !== null,
    blocked: blocked === undefined ? undefined : nameless(blocked, kept),
    ...(refusal && withoutQuotes(refusal, blocked, askedOf(query, params), kept)),
  }
}

/** A name that was not seen outside of literals may be one. */
function nameless(blocked: Blocked, kept: string | null): Blocked {
  const isName = OWN_WORDS.has(blocked.kind) || kept?.toLowerCase().includes(blocked.name.toLowerCase()) === true
  return isName ? blocked : { kind: blocked.kind, name: '?' }
}

/** The text, and behind it the values of its parameters: all of them are literals. */
function askedOf(query: string | null, params: Told['params']): string | null {
  return query === null || params === undefined ? query : `${query}\n${params.json}`
}

/** Their sentences quote nothing of a query. */
const OWN_SENTENCES: ReadonlySet<Code> = new Set<Code>([
  'NOT_CONNECTED',
  'DATASOURCE_DISABLED',
  'RATE_LIMITED',
  'INTERNAL',
  'DATASOURCE_UNAVAILABLE',
  'OVERLOADED',
  'QUERY_TIMEOUT',
])
/** Theirs may quote names, which are looked for. Those of all other codes may quote values, also from the database. */
const NAMING: ReadonlySet<Code> = new Set<Code>(['QUERY_DENIED', 'SCHEMA_STALE'])

/** The reason, without a sentence that may hold a literal of the query. */
function withoutQuotes(
  { code, reason }: NonNullable<Told['refusal']>,
  blocked: Blocked | undefined,
  asked: string | null,
  kept: string | null,
): Reason {
  const { error, hint, ...numbers } = reason
  if (OWN_SENTENCES.has(code)) return reason
  const isOwn = blocked !== undefined && OWN_WORDS.has(blocked.kind)
  const isKnown = isOwn || (kept !== null && asked !== null && !isWrittenOtherwise(asked))
  if (!NAMING.has(code) || asked === null || !isKnown) return numbers
  const quotes = quotesOf(asked, kept ?? '')
  return {
    ...numbers,
    ...(error !== undefined && !quotes(error) && { error }),
    ...(hint !== undefined && !quotes(hint) && { hint }),
  }
}

/** Of a literal with escapes, or in several parts, a sentence may hold what does not stand in the text. */
function isWrittenOtherwise(asked: string): boolean {
  return asked.includes('\\') || isContinued(asked)
}

const BEHIND_QUOTE = /['"]\s*(?:--|$)/

/** SQL takes literals for one that have nothing between them but an end of line, spaces and comments. */
function isContinued(asked: string): boolean {
  let endsInQuote = false
  for (const line of asked.split(/[\r\n]/)) {
    const begin = line.trimStart()
    if (endsInQuote && /^['"]/.test(begin)) return true
    if (begin !== '' && !begin.startsWith('--')) endsInQuote = BEHIND_QUOTE.test(line)
  }
  return false
}

/** Our sentences are made of these: that one stands there tells nothing of a query. */
const GRAMMAR: ReadonlySet<string> = new Set(
  `a an and are as at be but by can column columns does exist exposed for from function has have in is it may more no not of
  on one only or over table tables than that the there this to use which with`.split(/\s+/),
)
const WORD = /[\p{L}\p{N}_]+/gu
/** Shorter ones are parts of many others, and count only as whole words. */
const PART_FROM = 4

/** Whether a sentence has a word that the query has, but only within its literals. */
function quotesOf(query: string, kept: string): (sentence: string) => boolean {
  const [asked, left] = [query, kept].map((text) => {
    const lower = text.toLowerCase()
    const words = new Set(lower.match(WORD))
    return (word: string) =>
      words.has(word) || ((word.length >= PART_FROM || /\p{N}/u.test(word)) && lower.includes(word))
  })
  return (sentence) =>
    (sentence.toLowerCase().match(WORD) ?? []).some(
      (word) => !GRAMMAR.has(word) && asked?.(word) === true && left?.(word) !== true,
    )
}
