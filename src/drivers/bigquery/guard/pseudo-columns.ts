// Pseudo columns are _TABLE_SUFFIX, _PARTITIONTIME and _PARTITIONDATE. If a query names one, the sub-select of its
// table returns it under a generated name. The guard refuses a query whose result would show a generated name, or in
// which a row would contain a pseudo column.
import { keyOf, type Run } from './nodes.ts'
import { refusedStatement } from './refusal.ts'
import type { Columns } from './column-sets.ts'
import type { Scope } from './scope.ts'
import type { Source } from './source.ts'
import { isName, type Token } from './tokens.ts'
import type { Walk } from './walk-state.ts'

export type Pseudo = Source['pseudoColumns'][number]

const PSEUDO: readonly string[] = ['_table_suffix', '_partitiontime', '_partitiondate']

export function ourName(prefix: string, pseudo: Pseudo): string {
  switch (pseudo) {
    case '_TABLE_SUFFIX':
      return `${prefix}_suffix`
    case '_PARTITIONTIME':
      return `${prefix}_ptime`
    case '_PARTITIONDATE':
      return `${prefix}_pdate`
  }
}

/** `form` is the syntax that cannot be combined with a pseudo column. */
export function refusedBeside(form: string, at: number): Error {
  const hint = 'Select the columns, and the pseudo column AS another name, in a sub-query first.'
  const why = `a pseudo column (_TABLE_SUFFIX, _PARTITIONTIME) cannot be read together with ${form}`
  return refusedStatement('_TABLE_SUFFIX', at, hint, why)
}

/**
 * Notes that the query reads whole rows of the scope by the syntax `form`, for example NATURAL JOIN. Throws Refusal if
 * the rows contain a pseudo column.
 */
export function readWhole(scope: Scope, form: string): void {
  scope.readAll()
  if (scope.exports.size > 0) throw refusedBeside(form, -1)
}

/**
 * A star leaves out the generated names. If one of the caller's columns is named like a pseudo column, it gets a
 * generated name too, and the star would leave it out. So this is refused.
 */
export function checkStar({ sets, renamed }: Walk, scope: Scope): void {
  if (scope.isJoinedByPseudo) throw refusedBeside('a star and a JOIN that has it in USING', -1)
  for (const pseudo of renamed.keys()) {
    if (sets.has(scope.columns, pseudo.toLowerCase())) throw refusedBeside('a star and a column of that name', -1)
  }
}

/** True for USING with a pseudo column, which would add the pseudo column to a star. */
export function isJoinedBy(run: Run): boolean {
  return keyOf(run[0]) === 'USING' && run.some((piece) => piece.kind !== 'nested' && isPseudo(piece))
}

/**
 * A row that is used as a value, or as a STRUCT, keeps the names of its columns. Throws Refusal if one of them is the
 * name of a pseudo column, because the value could then contain the generated name.
 */
export function checkRow({ sets }: Walk, columns: Columns, form: string, at: number): void {
  if (PSEUDO.some((name) => sets.has(columns, name))) throw refusedBeside(form, at)
}

/** UNPIVOT turns the names of columns into values. Throws Refusal if one of them is a pseudo column. */
export function checkUnpivot(run: Run): void {
  if (keyOf(run[0]) !== 'UNPIVOT') return
  for (const piece of run) if (piece.kind !== 'nested' && isPseudo(piece)) throw refusedBeside('UNPIVOT', piece.at)
}

/**
 * True for a field of a value that only has the name of a pseudo column (JSON '…'._TABLE_SUFFIX): the text before the
 * dot is no item of FROM. This field keeps its name. No field of a STRUCT has a generated name.
 */
export function isField(run: Run, index: number, scope: Scope | null): boolean {
  const [piece, dot, owner, before] = [run[index], run[index - 1], run[index - 2], run[index - 3]]
  if (piece === undefined || piece.kind === 'nested' || !isPseudo(piece) || keyOf(dot) !== '.') return false
  if (owner === undefined || owner.kind === 'nested' || !isName(owner) || keyOf(before) === '.') return true
  return (scope?.item(owner.name) ?? null) === null
}

/** Refuses STRUCT(_TABLE_SUFFIX), because its field would have the generated name. */
export function checkFields(run: Run, renamed: ReadonlyMap<string, string>): void {
  if (renamed.size === 0) return
  const open: boolean[] = []
  for (const [index, piece] of run.entries()) {
    if (piece.kind === 'nested') continue
    if (piece.key === '(' || piece.key === '[') open.push(piece.key === '(' && keyOf(run[index - 1]) === 'STRUCT')
    else if (piece.key === ')' || piece.key === ']') open.pop()
    else if (open.at(-1) === true && isRenamed(piece, renamed) && isLast(run, index)) throw unnamed(piece)
  }
}

/** Refuses SELECT AS STRUCT _TABLE_SUFFIX, because its field would have the generated name. */
export function checkField(run: Run, renamed: ReadonlyMap<string, string>): void {
  const last = run.at(-1)
  if (last === undefined || last.kind === 'nested' || !isRenamed(last, renamed)) return
  if (run.length === 1 || keyOf(run.at(-2)) === '.') throw unnamed(last)
}

function unnamed(token: Token): Error {
  return refusedBeside('a STRUCT whose field would have its name', token.at)
}

/** True if the argument is only this token, or a path that ends with it. */
function isLast(run: Run, index: number): boolean {
  return [',', ')'].includes(keyOf(run[index + 1])) && ['(', ',', '.'].includes(keyOf(run[index - 1]))
}

function isPseudo(token: Token): boolean {
  return isName(token) && PSEUDO.includes(token.name.toLowerCase())
}

function isRenamed(token: Token, renamed: ReadonlyMap<string, string>): boolean {
  return isName(token) && renamed.has(token.name.toUpperCase())
}
