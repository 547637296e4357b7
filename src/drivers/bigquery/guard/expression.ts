// Expressions as runs of tokens: balanced, sub-queries found, calls looked up, every reserved word known. What the tokens
// say to each other is BigQuery's business; where a table can be named is ours, so an unknown word ends the run.
import { functionHint, partFirst } from './alternatives.ts'
import { isNoCall, mayCall } from './functions.ts'
import type { Piece, Query } from './nodes.ts'
import { isQueryStart, readQuery } from './parse.ts'
import { deeper, expect, key, peek, take, unexpected, type Reader } from './reader.ts'
import { Broken, CALLABLE, refusedFunction, refusedOperator, refusedStatement } from './refusal.ts'
import { isName, PART, RESERVED, type Token } from './tokens.ts'

const words = (text: string): ReadonlySet<string> => new Set(text.split(/\s+/))

/** Reserved words that may stand in any expression. */
const PLAIN = words(
  `ALL AND ANY ARRAY AS ASC AT BETWEEN CASE CAST COLLATE CUBE DESC DISTINCT ELSE END ESCAPE EXISTS EXTRACT FALSE GROUPING
  IF IGNORE IN INTERVAL IS LIKE NOT NULL NULLS OR OVER RANGE RESPECT ROLLUP SOME STRUCT THEN TO TRUE WHEN`,
)
/** Those that may stand in parentheses too: arguments of aggregates, windows. */
const INSIDE = words(
  `BY CURRENT EXCLUDE FOLLOWING GROUP GROUPS HAVING LIMIT NO ORDER PARTITION PRECEDING ROWS UNBOUNDED WHERE`,
)
/** What turns `((SELECT …)` into a query that goes on. */
const GOES_ON = words('UNION INTERSECT EXCEPT ORDER LIMIT FULL LEFT INNER |>')

export interface Wanted {
  /** Commas belong to the run. */
  readonly commas: boolean
  /** Reserved words that belong to it besides. */
  readonly words: ReadonlySet<string>
  /** `.*` belongs to it; else the run ends before. */
  readonly stars: boolean
}

const EXPRESSION: Wanted = { commas: false, words: new Set(), stars: false }
export const LIST: Wanted = { ...EXPRESSION, commas: true }
const ARGUMENTS: Wanted = { commas: true, words: INSIDE, stars: true }
const PIVOTED: Wanted = { commas: true, words: new Set([...INSIDE, 'FOR']), stars: true }

/** One expression or list of them, up to what does not belong to it. Throws Broken where there is none. */
export function readRun(reader: Reader, wanted: Wanted = EXPRESSION): Piece[] {
  const run: Piece[] = []
  readInto(reader, run, wanted)
  if (run.length === 0) throw unexpected(reader, 'an expression is missing')
  return run
}

function readInto(reader: Reader, run: Piece[], wanted: Wanted): void {
  for (let token = peek(reader); token !== undefined; token = peek(reader)) {
    if (token.key === PART) throw new Broken('a number is glued to a name', token.at)
    const isTaken =
      token.kind === 'symbol'
        ? sign(reader, run, wanted)
        : RESERVED.has(token.key)
          ? reserved(reader, run, wanted)
          : plain(reader, run)
    if (!isTaken) return
  }
}

function sign(reader: Reader, run: Piece[], wanted: Wanted): boolean {
  switch (key(reader)) {
    case ')':
    case ']':
    case '|>':
      return false
    case ',':
      if (!wanted.commas) return false
      break
    case '.':
      if (key(reader, 1) === '*' && !wanted.stars) return false
      break
    case '(':
      readParentheses(reader, run, ARGUMENTS, false)
      return true
    case '[':
      run.push(take(reader))
      deeper(reader, () => readInto(reader, run, ARGUMENTS))
      run.push(expect(reader, ']'))
      return true
  }
  run.push(take(reader))
  return true
}

/** The five words that name tables or begin queries stand in an expression only where these lines say so. */
function reserved(reader: Reader, run: Piece[], wanted: Wanted): boolean {
  const word = key(reader)
  const opens = key(reader, 1) === '('
  switch (word) {
    case 'SELECT':
    case 'JOIN':
      return false
    case 'FROM':
      if (!isDistinctFrom(run)) return false
      break
    case 'UNNEST':
      if (!opens || !['IN', 'ANY', 'SOME', 'ALL'].includes(keyOf(run.at(-1)))) return false
      break
    case 'WITH':
    case 'LEFT':
    case 'RIGHT':
      if (!opens) return false
      break
    case 'WITHIN':
      throw refusedStatement(
        'WITHIN GROUP',
        peek(reader)?.at ?? 0,
        'Write PERCENTILE_CONT(x, 0.5) OVER (PARTITION BY y), or APPROX_QUANTILES(x, 100)[OFFSET(50)] with GROUP BY.',
      )
    case 'EXTRACT':
      run.push(take(reader))
      if (opens) readExtract(reader, run)
      return true
    case 'EXCEPT':
      if (!opens || !wanted.words.has(word)) return false
      break
    default:
      if (!PLAIN.has(word) && !wanted.words.has(word)) return false
  }
  run.push(take(reader))
  if (opens && CALLS.has(word)) readParentheses(reader, run, ARGUMENTS, true)
  return true
}

/** Reserved words whose parentheses hold arguments, never a query that goes on. */
const CALLS = words('CAST COLLATE GROUPING IF LEFT RANGE RIGHT STRUCT UNNEST WITH')

/** x IS [NOT] DISTINCT FROM y. */
function isDistinctFrom(run: readonly Piece[]): boolean {
  if (keyOf(run.at(-1)) !== 'DISTINCT') return false
  return keyOf(run.at(-2)) === 'IS' || (keyOf(run.at(-2)) === 'NOT' && keyOf(run.at(-3)) === 'IS')
}

/** (part FROM expression): the one FROM that a call may hold. */
function readExtract(reader: Reader, run: Piece[]): void {
  run.push(expect(reader, '('))
  deeper(reader, () => {
    readInto(reader, run, EXPRESSION)
    run.push(expect(reader, 'FROM'))
    readInto(reader, run, EXPRESSION)
  })
  run.push(expect(reader, ')'))
}

/** A name, a word that is none of the grammar's, or a literal. */
function plain(reader: Reader, run: Piece[]): boolean {
  const token = take(reader)
  const calls = isName(token) && key(reader) === '('
  if (calls && !isNoCall(token.key)) checkCall(token, run)
  if (calls) checkPart(reader, token)
  else checkOperator(reader, token, run)
  checkTableArgument(reader, token, run)
  run.push(token)
  if (calls) readParentheses(reader, run, ARGUMENTS, true)
  return true
}

/** What GoogleSQL has in its place, if anything, and what may be called. */
function hintOf(path: readonly string[]): string | undefined {
  const [name = ''] = path
  const like = path.length === 1 ? functionHint(name) : ''
  return like === '' ? undefined : `${like}${CALLABLE}`
}

/** DATE_TRUNC('month', day): a text is no part of a date. */
function checkPart(reader: Reader, token: Token): void {
  const first = peek(reader, 1)
  const hint = first?.kind === 'string' ? partFirst(token.name, first.text) : null
  if (first === undefined || hint === null) return
  throw refusedFunction(token.name, token.at, hint, `${token.name} takes its date part last, without quotes`)
}

/** x ILIKE 'pattern': an operator of other dialects, and a name everywhere else. */
function checkOperator(reader: Reader, token: Token, run: readonly Piece[]): void {
  if (!DIALECT.has(token.key)) return
  const before = run.at(-1)
  const next = peek(reader)
  const isOperand =
    before?.kind === 'nested' ||
    (before !== undefined && (isName(before) || before.key === ')' || before.key === 'NOT'))
  const isPattern = next !== undefined && (next.kind === 'string' || next.kind === 'parameter' || isName(next))
  if (!isOperand || !isPattern) return
  const hint = token.key === 'ILIKE' ? 'Write LOWER(x) LIKE LOWER(pattern).' : "Write REGEXP_CONTAINS(x, r'pattern')."
  throw refusedOperator(token.key, hint, token.at)
}

const DIALECT = words('ILIKE RLIKE REGEXP SIMILAR')

function checkCall(token: Token, run: readonly Piece[]): void {
  const names = [token.name]
  let behind = run.length - 1
  for (; keyOf(run[behind]) === '.'; behind -= 2) {
    const owner = run[behind - 1]
    if (owner === undefined || owner.kind === 'nested' || !isName(owner)) break
    names.push(owner.name)
  }
  const path = names.reverse()
  // (x).f(): a chained call of a built-in function; of a longer path it would be somebody's routine.
  const chained = keyOf(run[behind]) === '.'
  if (!mayCall(path) || (chained && path.length > 1)) throw refusedFunction(path.join('.'), token.at, hintOf(path))
}

const NAMES_MORE = words('TABLE MODEL GRAPH CONNECTION DESCRIPTOR INPUT')

/** TABLE t, MODEL m, GRAPH g: as an argument, or as a query of their own, they would read all of it. */
function checkTableArgument(reader: Reader, token: Token, run: readonly Piece[]): void {
  if (!NAMES_MORE.has(token.key)) return
  const next = peek(reader)
  if (next === undefined || !isName(next) || !['(', ',', '=>'].includes(keyOf(run.at(-1)))) return
  throw refusedStatement(token.key, token.at, 'Read the table in FROM.', `${token.key} may not be an argument`)
}

/** A sub-query, or a group that is printed as it is. Arguments of a call are never a query that goes on. */
function readParentheses(reader: Reader, run: Piece[], inside: Wanted, isCall: boolean): void {
  const open = expect(reader, '(')
  deeper(reader, () => {
    if (isQueryStart(reader)) {
      run.push({ kind: 'nested', query: readQuery(reader) })
      expect(reader, ')')
      return
    }
    const start = run.push(open)
    if (!isCall && key(reader) === '(') {
      readParentheses(reader, run, ARGUMENTS, false)
      const query = goesOn(reader, run, start)
      if (query !== null) {
        run.length = start - 1
        run.push({ kind: 'nested', query })
        expect(reader, ')')
        return
      }
    }
    readInto(reader, run, inside)
    run.push(expect(reader, ')'))
  })
}

/** ((SELECT …) UNION ALL …): what began as a group is a query whose first operand has just been read. */
function goesOn(reader: Reader, run: readonly Piece[], start: number): Query | null {
  const first = run[start]
  if (run.length !== start + 1 || first?.kind !== 'nested' || !GOES_ON.has(key(reader))) return null
  return readQuery(reader, first)
}

/** The parentheses of PIVOT or UNPIVOT. */
export function readPivoted(reader: Reader, run: Piece[]): void {
  run.push(expect(reader, '('))
  deeper(reader, () => readInto(reader, run, PIVOTED))
  run.push(expect(reader, ')'))
}

function keyOf(piece: Piece | undefined): string {
  return piece === undefined || piece.kind === 'nested' ? '' : piece.key
}
