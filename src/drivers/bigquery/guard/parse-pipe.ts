// Parses pipe operators such as |> WHERE …. An operator that only shapes rows becomes a run, and an operator that adds
// tables becomes a node. All other operators are refused by name.
import { readRun, type Wanted } from './parse-expression.ts'
import type { Piece, Pipe, Query } from './nodes.ts'
import { readHead, readNested, readWith, takeSetOperator } from './parse.ts'
import { readPart, readPivot, takeJoin } from './parse-from.ts'
import { expect, key, peek, take, unexpected, type Reader } from './token-reader.ts'
import { refusedStatement } from './refusal.ts'

const RUN: Wanted = { commas: true, words: new Set(['GROUP', 'BY', 'ORDER', 'WINDOW', 'EXCEPT']), stars: true }
const SHAPING = new Set(`SELECT EXTEND SET DROP RENAME AS WHERE LIMIT AGGREGATE DISTINCT ORDER WINDOW`.split(' '))

export function readPipe(reader: Reader): Pipe {
  expect(reader, '|>')
  const token = peek(reader)
  if (token === undefined) throw unexpected(reader)
  if (SHAPING.has(token.key)) return { kind: 'run', run: readShaping(reader) }
  if (token.key === 'WITH') return { kind: 'with', with: readWith(reader) }
  const pivot = readPivot(reader)
  if (pivot !== null) return { kind: 'run', run: [...pivot.run, ...(pivot.alias === null ? [] : [pivot.alias])] }
  const operator = takeSetOperator(reader)
  if (operator !== null) return { kind: 'set', operator, operands: readOperands(reader) }
  const join = takeJoin(reader)
  if (join !== null) return { kind: 'join', part: readPart(reader, join) }
  if (token.kind !== 'word') throw unexpected(reader, 'a pipe operator is missing')
  const hint = 'Use SELECT, EXTEND, SET, DROP, RENAME, AS, WHERE, LIMIT, AGGREGATE, DISTINCT, ORDER BY, JOIN, WITH, '
  throw refusedStatement(`|> ${token.text}`, token.at, `${hint}PIVOT, UNPIVOT or a set operation.`)
}

function readShaping(reader: Reader): Piece[] {
  const word = take(reader)
  const run: Piece[] = [word]
  if (word.key === 'SELECT') run.push(...readHead(reader))
  if (word.key === 'ORDER') run.push(expect(reader, 'BY'))
  // Only DISTINCT has no expression.
  return word.key === 'DISTINCT' ? run : [...run, ...readRun(reader, RUN)]
}

/** Reads (query), (query). A comma at the end is allowed. */
function readOperands(reader: Reader): Query[] {
  const operands = [readNested(reader).query]
  while (key(reader) === ',') {
    take(reader)
    if (key(reader) === '(') operands.push(readNested(reader).query)
  }
  return operands
}
