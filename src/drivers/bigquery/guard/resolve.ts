// The walk over a parsed query, scope by scope: expressions, stars, WITH queries, pipes. It changes nothing; print.ts prints
// what it found.
import type { Cte, Operand, Pipe, Query, Run, Select, Star, With } from './nodes.ts'
import { checkField, checkFields, checkRow, checkStar, isField, readWhole, refusedBeside } from './pseudo.ts'
import { resolveFrom, resolvePart } from './resolve-from.ts'
import { entryOf, Scope, type Columns, type Ctes } from './scope.ts'
import { isName } from './tokens.ts'
import type { Walk } from './walk.ts'

/** Returns the names of the columns, as far as they are known. */
export function resolveQuery(walk: Walk, query: Query, outerCtes: Ctes | null, outer: Scope | null): Columns {
  const ctes = query.with === null ? outerCtes : resolveWith(walk, query.with, outerCtes)
  const first = resolveOperand(walk, query.first, ctes, outer)
  for (const { operand } of query.rest) resolveOperand(walk, operand, ctes, outer)
  resolveRun(walk, query.tail, ctes, first.scope)
  if (query.pipes.length === 0) return first.columns
  return resolvePipes(walk, query.pipes, ctes, outer, new Scope(first.scope))
}

/** A WITH query sees those before it, in RECURSIVE all of them; never what is around. */
function resolveWith(walk: Walk, { recursive, ctes: list }: With, outer: Ctes | null): Ctes | null {
  const named = ({ name }: Cte, columns: Columns, next: Ctes | null): Ctes => {
    return { name: name.name.toLowerCase(), columns, outer: next }
  }
  let ctes = outer
  if (recursive) for (const cte of list) ctes = named(cte, [], ctes)
  for (const cte of list) ctes = named(cte, resolveQuery(walk, cte.query, ctes, null), ctes)
  return ctes
}

interface Found {
  readonly columns: Columns
  /** What ORDER BY and pipes behind it see. */
  readonly scope: Scope | null
}

function resolveOperand(walk: Walk, operand: Operand, ctes: Ctes | null, outer: Scope | null): Found {
  if (operand.kind === 'select') return resolveSelect(walk, operand, ctes, outer)
  const scope = new Scope(outer)
  if (operand.kind === 'nested') {
    const columns = resolveQuery(walk, operand.query, ctes, outer)
    scope.add({ alias: '', columns, exports: [], isWhole: true })
    return { columns, scope }
  }
  resolveFrom(walk, operand.from, ctes, outer, scope)
  readWhole(scope, 'pipe syntax')
  return { columns: scope.readAll().columns, scope }
}

function resolveSelect(walk: Walk, select: Select, ctes: Ctes | null, outer: Scope | null): Found {
  const scope = new Scope(outer)
  if (select.from !== null) resolveFrom(walk, select.from, ctes, outer, scope)
  const isStruct = select.head.some(({ key }) => key === 'STRUCT')
  const names = new Set<string>()
  const columns: Columns[number][] = [names]
  for (const item of select.items) {
    if (item.kind === 'star') {
      const shown = resolveStar(walk, item, scope)
      if (isStruct) checkRow(shown, 'a STRUCT that takes its name', -1)
      columns.push(...shown)
      resolveRun(walk, isNamed(item.of) ? [] : item.of, ctes, scope)
      resolveRun(walk, item.replace, ctes, scope)
      continue
    }
    resolveRun(walk, item.run, ctes, scope)
    if (isStruct) checkField(item.run, walk.renamed)
    const last = item.run.at(-1)
    if (last !== undefined && last.kind !== 'nested' && isName(last)) names.add(last.name.toLowerCase())
  }
  resolveRun(walk, select.clauses, ctes, scope)
  return { columns, scope }
}

/** t.* of one name: the star says itself which row it reads. */
function isNamed(of: Run): boolean {
  return of.length === 1 && of[0]?.kind !== 'nested'
}

/** A star shows whole rows, but not what we returned besides. */
function resolveStar(walk: Walk, star: Star, scope: Scope): Columns {
  const [of] = star.of
  if (of === undefined) {
    const { columns, exports } = scope.readAll()
    if (exports.length > 0) checkStar(scope, walk.renamed)
    walk.stars.set(star, exports)
    return columns
  }
  const item = of.kind !== 'nested' && isNamed(star.of) ? scope.item(of.name) : null
  if (item === null) return []
  item.isWhole = true
  walk.stars.set(star, item.exports)
  return item.columns
}

/** The sub-queries of an expression, and the rows it reads whole. */
export function resolveRun(walk: Walk, run: Run, ctes: Ctes | null, scope: Scope | null): void {
  checkFields(run, walk.renamed)
  for (const [index, piece] of run.entries()) {
    if (piece.kind === 'nested') {
      resolveQuery(walk, piece.query, ctes, scope)
      continue
    }
    if (!isName(piece)) continue
    if (isField(run, index, scope)) walk.kept.add(piece)
    const [before, after] = [run[index - 1], run[index + 1]]
    if (isKey(before, '.') || isKey(after, '.') || isKey(after, '(') || isKey(before, 'AS')) continue
    const entry = scope?.item(piece.name) ?? null
    if (entry === null) continue
    entry.isWhole = true
    const form = `a row of ${piece.name} as one value`
    if (entry.exports.length > 0) throw refusedBeside(form, piece.at)
    checkRow(entry.columns, form, piece.at)
  }
}

function isKey(piece: Run[number] | undefined, key: string): boolean {
  return piece !== undefined && piece.kind !== 'nested' && piece.key === key
}

/** What a pipe brings in stays in sight of those behind it. */
function resolvePipes(
  walk: Walk,
  pipes: readonly Pipe[],
  outerCtes: Ctes | null,
  outer: Scope | null,
  scope: Scope,
): Columns {
  let ctes = outerCtes
  for (const pipe of pipes) {
    switch (pipe.kind) {
      case 'run':
        resolveRun(walk, pipe.run, ctes, scope)
        scope.add(entryOf(aliasOf(pipe.run), named(pipe.run)))
        break
      case 'join':
        resolvePart(walk, pipe.part, ctes, outer, scope)
        readWhole(scope, 'pipe syntax')
        break
      case 'set':
        for (const query of pipe.operands) resolveQuery(walk, query, ctes, outer)
        break
      case 'with':
        ctes = resolveWith(walk, pipe.with, ctes)
        break
    }
  }
  return scope.readAll().columns
}

/** |> AS t. */
function aliasOf(run: Run): string {
  const [word, name] = run
  return isKey(word, 'AS') && name !== undefined && name.kind !== 'nested' ? name.name : ''
}

/** Names that a pipe may have given: behind AS, and what is listed. */
function named(run: Run): Columns {
  const names = run.flatMap((piece) => (piece.kind !== 'nested' && isName(piece) ? [piece.name.toLowerCase()] : []))
  return [new Set(names)]
}
