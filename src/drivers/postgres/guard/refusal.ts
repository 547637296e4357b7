// Defines the error that the guard throws, and its messages. A hidden name and a name that does not exist get the same
// message, and no hint names a hidden table or column.
import type { BlockedKind } from '../../driver.ts'
import { FUNCTIONS_ELSEWHERE } from './allowed/other-dialects.ts'
import { DESCRIPTION, FUNCTIONS_HINT, TYPES_HINT } from './allowed/hints.ts'

/** `at` is a byte offset in the caller's text, or -1 if it is unknown. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly kind: BlockedKind
  readonly blocked: string
  readonly hint: string
  readonly at: number

  constructor(kind: BlockedKind, blocked: string, why: string, hint: string, at: number | undefined) {
    const short = cut(blocked, NAME_MAX)
    // A name may have 64 kB. Messages repeat only its beginning.
    const repeated = (text: string): string =>
      cut(short === blocked ? text : text.replaceAll(blocked, () => short), TEXT_MAX)
    super(repeated(why))
    this.kind = kind
    this.blocked = short
    this.hint = repeated(hint)
    this.at = at ?? -1
  }
}

const NAME_MAX = 160
const TEXT_MAX = 4_000

function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most).toWellFormed()}…` : text
}

/** Refuses a part of a query. `name` is a statement or clause in capitals, or describes the part. */
export function refusedStatement(name: string, at?: number, hint?: string): Refusal {
  return new Refusal(
    'statement',
    name,
    `${name} is not allowed in a query`,
    hint ?? STATEMENT_HINTS.get(name) ?? STATEMENT_HINT,
    at,
  )
}

const STATEMENT_HINT =
  'Send one SELECT that only reads, without FOR UPDATE or INTO. WITH, VALUES and TABLE are allowed.'

const STATEMENT_HINTS: ReadonlyMap<string, string> = new Map([
  ['SHOW', `Send a SELECT; settings cannot be read. ${DESCRIPTION}`],
  ['EXPLAIN', 'Send the SELECT itself, without EXPLAIN. The service estimates its cost before it runs.'],
  ['SET', 'Leave SET out: each query runs by itself, with fixed settings.'],
  ['BEGIN, COMMIT or ROLLBACK', 'Leave it out: each query runs in its own read-only transaction.'],
  ['more than one statement', 'Send the statements one by one, each a SELECT.'],
  ['an empty text', 'Send one SELECT.'],
  ['FOR UPDATE', 'Leave FOR UPDATE and FOR SHARE out: a query locks nothing.'],
  ['SELECT INTO', 'Leave INTO out: the response contains the rows.'],
  ['CALL', 'Send a SELECT. Procedures cannot be called.'],
])

export function refusedTable(name: string, exposed: string, at: number | undefined): Refusal {
  return new Refusal('table', name, `table ${name} does not exist or is not exposed`, exposed, at)
}

export function refusedColumn(name: string, shown: string, at: number | undefined): Refusal {
  return new Refusal('column', name, `column ${name} does not exist or is not exposed`, shown, at)
}

export function refusedFunction(name: string, at: number | undefined, hint?: string): Refusal {
  return new Refusal(
    'function',
    name,
    `function ${name}() does not exist or may not be called`,
    hint ?? FUNCTIONS_ELSEWHERE.get(name) ?? FUNCTIONS_HINT,
    at,
  )
}

export function refusedType(name: string, at: number | undefined, hint?: string): Refusal {
  return new Refusal('type', name, `type ${name} does not exist or may not be named`, hint ?? TYPES_HINT, at)
}

export function refusedOperator(name: string, hint: string, at: number | undefined, why?: string): Refusal {
  return new Refusal('operator', name, why ?? `operator ${name} may not be used here`, hint, at)
}

/** `name` says which limit. */
export function refusedLimit(name: string, why: string, at?: number): Refusal {
  return new Refusal('limit', name, why, 'Split the query, or write it with fewer parts.', at)
}

/** Refuses a name in GROUP BY or ORDER BY that two outputs have. */
export function ambiguousOutput(name: string, at: number | undefined): Refusal {
  const why = `column ${name} is ambiguous: more than one output has this name`
  return new Refusal('column', name, why, 'Give each output its own name with AS.', at)
}
