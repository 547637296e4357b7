// Handles pseudo columns (_TABLE_SUFFIX, _PARTITIONTIME). A sub-select returns them under generated names, and only if
// the query names them. The guard refuses a query that would show a generated name, or that would make a row contain a
// pseudo column.
import { keyOf, type Run } from './nodes.ts'
import { refusedStatement } from './refusal.ts'
import type { Columns } from './column-sets.ts'
import type { Scope } from './scope.ts'
import type { Source } from './source.ts'
import { isName, type Token } from './tokens.ts'
import type { Walk } from './walk-state.ts'

export type Pseudo = Source['pseudoColumns'][number]

/** The names of the pseudo columns, in lower case. */
const PSEUDO: readonly string[] = ['_table_suffix', '_partitiontime', '_partitiondate']

/** Returns the generated name for a pseudo column. */
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

/** Returns a refusal. `form` is the syntax that a query may not combine with a pseudo column. */
export function refusedBeside(form: string, at: number): Error {
  const hint = 'Select the columns, and the pseudo column AS another name, in a sub-query first.'
  const why = `a pseudo column (_TABLE_SUFFIX, _PARTITIONTIME) cannot be read together with ${form}`
  return refusedStatement('_TABLE_SUFFIX', at, hint, why)
}

/**
 * Marks all rows of the scope as read whole. Called if a form other than a star reads them. Throws Refusal if the rows
 * contain a pseudo column.
 */
export function readWhole(scope: Scope, form: string): void {
  scope.readAll()
  if (scope.exports.size > 0) throw refusedBeside(form, -1)
}

/**
 * Checks a star. A star excludes the generated names. A column that the caller names like a pseudo column is printed
 * under a generated name, so the star would exclude this column too.
 */
export function checkStar({ sets, renamed }: Walk, scope: Scope): void {
  if (scope.isJoinedByPseudo) throw refusedBeside('a star and a JOIN … USING it', -1)
  for (const pseudo of renamed.keys()) {
    if (sets.has(scope.columns, pseudo.toLowerCase())) throw refusedBeside('a star and a column of that name', -1)
  }
}

/** Returns whether the condition is USING with a pseudo column, which would add the pseudo column to a star. */
export function isJoinedBy(run: Run): boolean {
  return keyOf(run[0]) === 'USING' && run.some((piece) => piece.kind !== 'nested' && isPseudo(piece))
}

/**
 * Throws Refusal if a row that is used as one value, or as a STRUCT, has a column with the name of a pseudo column. The
 * value could contain the generated name, because it keeps the names of the row's columns.
 */
export function checkRow({ sets }: Walk, columns: Columns, form: string, at: number): void {
  if (PSEUDO.some((name) => sets.has(columns, name))) throw refusedBeside(form, at)
}

/** Throws Refusal for a pseudo column in UNPIVOT, because UNPIVOT turns column names into text values. */
export function checkUnpivot(run: Run): void {
  if (keyOf(run[0]) !== 'UNPIVOT') return
  for (const piece of run) if (piece.kind !== 'nested' && isPseudo(piece)) throw refusedBeside('UNPIVOT', piece.at)
}

/**
 * Returns whether a token with the name of a pseudo column is a field of a value (JSON '…'._TABLE_SUFFIX): the path
 * before the dot is then not an item of FROM. A field keeps its name. No field of a STRUCT has a generated name.
 */
export function isField(run: Run, index: number, scope: Scope | null): boolean {
  const [piece, dot, owner, before] = [run[index], run[index - 1], run[index - 2], run[index - 3]]
  if (piece === undefined || piece.kind === 'nested' || !isPseudo(piece) || keyOf(dot) !== '.') return false
  if (owner === undefined || owner.kind === 'nested' || !isName(owner) || keyOf(before) === '.') return true
  return (scope?.item(owner.name) ?? null) === null
}

/** Refuses STRUCT(_TABLE_SUFFIX), because the field would have the generated name. */
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

/** Refuses SELECT AS STRUCT _TABLE_SUFFIX, because the field would have the generated name. */
export function checkField(run: Run, renamed: ReadonlyMap<string, string>): void {
  const last = run.at(-1)
  if (last === undefined || last.kind === 'nested' || !isRenamed(last, renamed)) return
  if (run.length === 1 || keyOf(run.at(-2)) === '.') throw unnamed(last)
}

function unnamed(token: Token): Error {
  return refusedBeside('a STRUCT that takes its name', token.at)
}

/** Returns whether the argument is only this token, or a path that ends with this token. */
function isLast(run: Run, index: number): boolean {
  return [',', ')'].includes(keyOf(run[index + 1])) && ['(', ',', '.'].includes(keyOf(run[index - 1]))
}

function isPseudo(token: Token): boolean {
  return isName(token) && PSEUDO.includes(token.name.toLowerCase())
}

function isRenamed(token: Token, renamed: ReadonlyMap<string, string>): boolean {
  return isName(token) && renamed.has(token.name.toUpperCase())
}
