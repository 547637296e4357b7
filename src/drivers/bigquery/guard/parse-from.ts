// Parses FROM clauses. Table functions and time travel are refused before their arguments are read.
import { readPivoted, readRun, LIST } from './parse-expression.ts'
import type { Derived, From, FromItem, FromPart, Path, Piece, Pivot, Unnest } from './nodes.ts'
import { isQueryStart, readQuery, takeNames } from './parse.ts'
import { withDepth, expect, key, peek, take, takeName, takeWords, unexpected, type Reader } from './token-reader.ts'
import { refusedFunction, refusedStatement, type Malformed } from './refusal.ts'
import { isName, PART, type Token } from './tokens.ts'

/** Reads the items after the word FROM. */
export function readFrom(reader: Reader): From {
  const parts: FromPart[] = [readPart(reader, [])]
  for (let joiner = takeJoiner(reader); joiner !== null; joiner = takeJoiner(reader)) {
    parts.push(readPart(reader, joiner))
  }
  return { parts }
}

function takeJoiner(reader: Reader): Token[] | null {
  return key(reader) === ',' ? [take(reader)] : takeJoin(reader)
}

/** Reads [NATURAL] [INNER | CROSS | LEFT …] JOIN. Returns null if there is no JOIN here. */
export function takeJoin(reader: Reader): Token[] | null {
  const words = ['NATURAL', 'INNER', 'CROSS', 'LEFT', 'RIGHT', 'FULL', 'OUTER', 'HASH']
  let ahead = 0
  while (ahead < 4 && words.includes(key(reader, ahead))) ahead += 1
  if (key(reader, ahead) !== 'JOIN') return null
  return [...takeWords(reader, words), expect(reader, 'JOIN')]
}

export function readPart(reader: Reader, joiner: readonly Token[]): FromPart {
  const item = readItem(reader)
  const conditions: Piece[][] = []
  for (;;) {
    if (key(reader) === 'ON') {
      conditions.push([take(reader), ...readRun(reader)])
    } else if (key(reader) === 'USING') {
      const using = [take(reader)]
      takeNames(reader, using)
      conditions.push(using)
    } else return { joiner, item, conditions }
  }
}

function readItem(reader: Reader): FromItem {
  const token = peek(reader)
  if (token?.key === '(') return readGroup(reader)
  if (token?.key === 'UNNEST') return readUnnest(reader)
  if (token?.key === 'LATERAL') throw refusedStatement('LATERAL', token.at, 'Write a join, or a sub-query in SELECT.')
  if (token === undefined || !isName(token)) throw unexpected(reader, 'a table is missing')
  return readPath(reader)
}

function readUnnest(reader: Reader): Unnest {
  take(reader)
  expect(reader, '(')
  const run = withDepth(reader, () => readRun(reader, LIST))
  expect(reader, ')')
  return { kind: 'unnest', run, alias: takeAlias(reader), offset: takeOffset(reader) }
}

/**
 * Reads ( query ) or ( joins ). Text that begins with ((query) is a query, unless a join, an alias, a pivot or a sample
 * follows the inner query.
 */
function readGroup(reader: Reader): FromItem {
  expect(reader, '(')
  const inside = withDepth(reader, (): FromItem => {
    if (isQueryStart(reader)) return derived(readQuery(reader))
    const from = readFrom(reader)
    const [first] = from.parts
    if (first === undefined || from.parts.length > 1 || !isBare(first.item)) return { kind: 'parenthesised', from }
    return derived(readQuery(reader, { kind: 'nested', query: first.item.query }))
  })
  expect(reader, ')')
  if (inside.kind !== 'derived') return inside
  const { alias, pivots } = readNames(reader)
  return { ...inside, alias, pivots, sample: takeSample(reader) }
}

function derived(query: Derived['query']): Derived {
  return { kind: 'derived', query, alias: null, sample: [], pivots: [] }
}

function isBare(item: FromItem): item is Derived {
  return item.kind === 'derived' && item.alias === null && item.sample.length === 0 && item.pivots.length === 0
}

function readPath(reader: Reader): Path {
  const start = reader.at
  const parts = [takeFirst(reader)]
  while (key(reader) === '.') {
    take(reader)
    if (key(reader) === '*') throw wildcard(reader)
    parts.push(takeName(reader).name)
  }
  if (key(reader) === '*') throw wildcard(reader)
  const tokens = reader.tokens.slice(start, reader.at)
  const at = tokens[0]?.at ?? 0
  if (key(reader) === '(') {
    const hint = 'Table functions are not supported: read the tables that GET …/schema lists.'
    throw refusedFunction(parts.join('.'), at, hint)
  }
  const { alias, pivots } = readNames(reader)
  const offset = takeOffset(reader)
  refuseTimeTravel(reader)
  const sample = takeSample(reader)
  return { kind: 'path', parts, tokens, alias, offset, sample, pivots, at, end: tokens.at(-1)?.end ?? at }
}

function wildcard(reader: Reader): Malformed {
  return unexpected(reader, 'the name of a wildcard table must be in backquotes')
}

/** The name of a project may contain dashes without quotes (my-project-1.d.t). */
function takeFirst(reader: Reader): string {
  const first = takeName(reader)
  let name = first.name
  for (let last = first; first.kind === 'word';) {
    const dash = peek(reader)
    const part = peek(reader, 1)
    if (dash?.key !== '-' || dash.at !== last.end || part?.at !== dash.end) break
    if (part.kind !== 'word' && part.key !== PART && !/^[0-9]+$/.test(part.text)) break
    take(reader)
    last = take(reader)
    name += `-${last.text}`
  }
  return name
}

/** Reads [AS] name. Returns null if there is no alias here. */
export function takeAlias(reader: Reader): Token | null {
  if (key(reader) === 'AS') {
    take(reader)
    return takeName(reader)
  }
  const token = peek(reader)
  return token !== undefined && isName(token) && !isClause(reader) ? take(reader) : null
}

/** True if PIVOT or UNPIVOT starts a clause here. Otherwise, the word is a name. Refuses MATCH_RECOGNIZE. */
function isClause(reader: Reader): boolean {
  if (key(reader) === 'PIVOT') return key(reader, 1) === '('
  if (key(reader) === 'UNPIVOT') return ['(', 'INCLUDE', 'EXCLUDE'].includes(key(reader, 1))
  if (key(reader) !== 'MATCH_RECOGNIZE') return false
  throw refusedStatement('MATCH_RECOGNIZE', peek(reader)?.at ?? 0)
}

/** Reads the alias, then any PIVOT and UNPIVOT, which may have an alias too. */
function readNames(reader: Reader): { alias: Token | null; pivots: Pivot[] } {
  const alias = takeAlias(reader)
  const pivots: Pivot[] = []
  for (let pivot = readPivot(reader); pivot !== null; pivot = readPivot(reader)) pivots.push(pivot)
  return { alias, pivots }
}

export function readPivot(reader: Reader): Pivot | null {
  if (!isClause(reader)) return null
  const run: Piece[] = [take(reader)]
  const nulls = takeWords(reader, ['INCLUDE', 'EXCLUDE'])
  if (nulls.length > 0) run.push(...nulls, expect(reader, 'NULLS'))
  readPivoted(reader, run)
  return { run, alias: takeAlias(reader) }
}

/** Reads WITH OFFSET [[AS] alias]. */
function takeOffset(reader: Reader): Token[] {
  if (key(reader) !== 'WITH') return []
  const words = [take(reader), expect(reader, 'OFFSET')]
  if (key(reader) === 'AS') return [...words, take(reader), takeName(reader)]
  const alias = takeAlias(reader)
  return alias === null ? words : [...words, alias]
}

function refuseTimeTravel(reader: Reader): void {
  if (key(reader) !== 'FOR') return
  if (key(reader, 1) === 'UPDATE') throw refusedStatement('FOR UPDATE', peek(reader)?.at ?? 0)
  const why = 'FOR SYSTEM_TIME is not supported: it would show deleted rows'
  throw refusedStatement('FOR SYSTEM_TIME', peek(reader)?.at ?? 0, 'Read the table as it is now.', why)
}

/** Reads TABLESAMPLE method (number PERCENT | ROWS) [REPEATABLE (number)]. A number cannot be an expression here. */
function takeSample(reader: Reader): Token[] {
  if (key(reader) !== 'TABLESAMPLE') return []
  const sample = [take(reader), takeName(reader), expect(reader, '('), takeNumber(reader)]
  const unit = takeWords(reader, ['PERCENT', 'ROWS'])
  if (unit.length !== 1) throw unexpected(reader, 'a sample is in PERCENT or ROWS')
  sample.push(...unit, expect(reader, ')'))
  if (key(reader) !== 'REPEATABLE') return sample
  return [...sample, take(reader), expect(reader, '('), takeNumber(reader), expect(reader, ')')]
}

function takeNumber(reader: Reader): Token {
  if (peek(reader)?.kind !== 'number' || key(reader) === PART) throw unexpected(reader, 'a number is missing')
  return take(reader)
}
