// Walks over a parsed query, scope by scope. The walk does not change the query, but collects what print.ts needs.
import { keyOf, type Operand, type Pipe, type Query, type Run, type Select, type Star, type With } from './nodes.ts'
import { NO_COLUMNS, type Columns } from './column-sets.ts'
import { checkField, checkFields, checkRow, checkStar, isField, readWhole, refusedBeside } from './pseudo-columns.ts'
import { resolveFrom, resolvePart } from './resolve-from.ts'
import { Ctes, entryOf, Scope } from './scope.ts'
import { isName } from './tokens.ts'
import type { Walk } from './walk-state.ts'

/** Returns the columns of the query, as far as they are known. */
export function resolveQuery(walk: Walk, query: Query, outerCtes: Ctes | null, outer: Scope | null): Columns {
  const ctes = query.with === null ? outerCtes : resolveWith(walk, query.with, new Ctes(outerCtes))
  const first = resolveOperand(walk, query.first, ctes, outer)
  for (const { operand } of query.rest) resolveOperand(walk, operand, ctes, outer)
  resolveRun(walk, query.tail, ctes, first.scope)
  if (query.pipes.length === 0) return first.columns
  return resolvePipes(walk, query.pipes, ctes, outer, new Scope(walk, first.scope))
}

/**
 * A WITH query sees the WITH queries before it, and with RECURSIVE all of them. It never sees the row of an outer
 * query.
 */
function resolveWith(walk: Walk, { recursive, ctes: list }: With, ctes: Ctes): Ctes {
  if (recursive) for (const { name } of list) ctes.add(name.name, NO_COLUMNS)
  for (const { name, query } of list) ctes.add(name.name, resolveQuery(walk, query, ctes, null))
  return ctes
}

interface Found {
  readonly columns: Columns
  /** The scope that ORDER BY and later pipes see. */
  readonly scope: Scope | null
}

function resolveOperand(walk: Walk, operand: Operand, ctes: Ctes | null, outer: Scope | null): Found {
  if (operand.kind === 'select') return resolveSelect(walk, operand, ctes, outer)
  const scope = new Scope(walk, outer)
  if (operand.kind === 'nested') {
    const columns = resolveQuery(walk, operand.query, ctes, outer)
    scope.add({ alias: '', columns, exports: [], isWhole: true })
    return { columns, scope }
  }
  resolveFrom(walk, operand.from, ctes, outer, scope)
  readWhole(scope, 'pipe syntax')
  return { columns: scope.columns, scope }
}

function resolveSelect(walk: Walk, select: Select, ctes: Ctes | null, outer: Scope | null): Found {
  const scope = new Scope(walk, outer)
  if (select.from !== null) resolveFrom(walk, select.from, ctes, outer, scope)
  const isStruct = select.head.some(({ key }) => key === 'STRUCT')
  const names: string[] = []
  let columns = NO_COLUMNS
  for (const item of select.items) {
    if (item.kind === 'star') {
      const shown = resolveStar(walk, item, scope)
      if (isStruct) checkRow(walk, shown, 'a STRUCT whose field would have its name', -1)
      columns |= shown
      resolveRun(walk, isNamed(item.of) ? [] : item.of, ctes, scope)
      resolveRun(walk, item.replace, ctes, scope)
      continue
    }
    resolveRun(walk, item.run, ctes, scope)
    if (isStruct) checkField(item.run, walk.renamed)
    const last = item.run.at(-1)
    if (last !== undefined && last.kind !== 'nested' && isName(last)) names.push(last.name)
  }
  resolveRun(walk, select.clauses, ctes, scope)
  return { columns: columns | walk.sets.ofNames(names), scope }
}

/** True for t.* with a single name before the dot. For such a star, resolveStar() marks the row that the star reads. */
function isNamed(of: Run): boolean {
  return of.length === 1 && of[0]?.kind !== 'nested'
}

/** A star shows whole rows, but without the pseudo columns that the sub-selects also return. */
function resolveStar(walk: Walk, star: Star, scope: Scope): Columns {
  const [of] = star.of
  if (of === undefined) {
    scope.readAll()
    if (scope.exports.size > 0) checkStar(walk, scope)
    walk.stars.set(star, scope.exports)
    return scope.columns
  }
  const item = of.kind !== 'nested' && isNamed(star.of) ? scope.item(of.name) : null
  if (item === null) return NO_COLUMNS
  item.isWhole = true
  walk.stars.set(star, new Set(item.exports))
  return item.columns
}

/** Also marks the rows that the expression reads as a whole. */
export function resolveRun(walk: Walk, run: Run, ctes: Ctes | null, scope: Scope | null): void {
  if (run.length === 0) return
  walk.runs.push({ run, scope })
  walk.work.spend(run.length)
  checkFields(run, walk.renamed)
  for (const [index, piece] of run.entries()) {
    if (piece.kind === 'nested') {
      resolveQuery(walk, piece.query, ctes, scope)
      continue
    }
    if (!isName(piece)) continue
    if (isField(run, index, scope)) walk.unrenamed.add(piece)
    const [before, after] = [run[index - 1], run[index + 1]]
    if (keyOf(before) === '.' || keyOf(after) === '.' || keyOf(after) === '(' || keyOf(before) === 'AS') continue
    const entry = scope?.item(piece.name) ?? null
    if (entry === null) continue
    entry.isWhole = true
    const form = `a row of ${piece.name} as one value`
    if (entry.exports.length > 0) throw refusedBeside(form, piece.at)
    checkRow(walk, entry.columns, form, piece.at)
  }
}

/** Columns that a pipe adds are visible to the pipes after it. */
function resolvePipes(
  walk: Walk,
  pipes: readonly Pipe[],
  outerCtes: Ctes | null,
  outer: Scope | null,
  scope: Scope,
): Columns {
  // WITH queries of a pipe are visible only to the pipes after it.
  const own = new Ctes(outerCtes)
  for (const pipe of pipes) {
    switch (pipe.kind) {
      case 'run':
        resolveRun(walk, pipe.run, own, scope)
        scope.add(entryOf(aliasOf(pipe.run), walk.sets.ofNames(definedNames(pipe.run), false)))
        break
      case 'join':
        resolvePart(walk, pipe.part, own, outer, scope)
        readWhole(scope, 'pipe syntax')
        break
      case 'set':
        for (const query of pipe.operands) resolveQuery(walk, query, own, outer)
        break
      case 'with':
        resolveWith(walk, pipe.with, own)
        break
    }
  }
  scope.readAll()
  return scope.columns
}

/** Returns `t` for |> AS t. */
function aliasOf(run: Run): string {
  const [word, name] = run
  return keyOf(word) === 'AS' && name !== undefined && name.kind !== 'nested' ? name.name : ''
}

/** Returns the names that a pipe may define: its aliases and its listed names. */
function definedNames(run: Run): string[] {
  return run.flatMap((piece) => (piece.kind !== 'nested' && isName(piece) ? [piece.name] : []))
}
