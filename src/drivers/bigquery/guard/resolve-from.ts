// Resolves each path in FROM to a WITH query, an array of a visible item, or an exposed table. All other paths are
// refused.
import type { From, FromItem, FromPart, Path, Run } from './nodes.ts'
import { checkUnpivot, isJoinedBy, ourName, readWhole, refusedBeside } from './pseudo-columns.ts'
import { Malformed, refusedColumn, refusedLimit } from './refusal.ts'
import { resolveQuery, resolveRun } from './resolve.ts'
import { NO_COLUMNS, type Columns } from './column-sets.ts'
import { entryOf, Scope, type Ctes } from './scope.ts'
import { sourceOf } from './table-source.ts'
import type { Source } from './source.ts'
import { isName, type Token } from './tokens.ts'
import type { Walk } from './walk-state.ts'

const TABLES_MAX = 50

/** Adds the items to `scope` one by one, because each item sees the items before it. */
export function resolveFrom(walk: Walk, from: From, ctes: Ctes | null, outer: Scope | null, scope: Scope): void {
  for (const part of from.parts) resolvePart(walk, part, ctes, outer, scope)
}

export function resolvePart(walk: Walk, part: FromPart, ctes: Ctes | null, outer: Scope | null, scope: Scope): void {
  resolveItem(walk, part.item, ctes, outer, scope)
  for (const condition of part.conditions) {
    if (isJoinedBy(condition)) scope.isJoinedByPseudo = true
    resolveRun(walk, condition, ctes, scope)
  }
  if (part.joiner.some(({ key }) => key === 'NATURAL')) readWhole(scope, 'NATURAL JOIN')
}

function resolveItem(walk: Walk, item: FromItem, ctes: Ctes | null, outer: Scope | null, scope: Scope): void {
  switch (item.kind) {
    case 'parenthesised': {
      // Items inside the parentheses do not see the items before the parentheses. Items after the parentheses see the
      // items inside. If nothing comes before the parentheses, the items inside are added to the scope directly,
      // because otherwise each level of nested parentheses would copy them.
      const isFirst = scope.isEmpty && scope.outer === outer
      const inside = isFirst ? scope : new Scope(walk, outer)
      resolveFrom(walk, item.from, ctes, outer, inside)
      if (!isFirst) scope.absorb(inside)
      return
    }
    case 'unnest':
      checkUnnest(item.run, scope)
      resolveRun(walk, item.run, ctes, scope)
      scope.add(entryOf(item.alias?.name ?? '', offsetOf(walk, item.offset)))
      return
    case 'derived': {
      const columns = resolveQuery(walk, item.query, ctes, outer)
      scope.add(entryOf(item.alias?.name ?? '', columns))
      resolvePivots(walk, item, ctes, scope)
      return
    }
    case 'path':
      resolvePath(walk, item, ctes, scope)
      resolvePivots(walk, item, ctes, scope)
      return
  }
}

/**
 * UNNEST(dataset.table.column) of a table that FROM does not name would read outside the sub-select. Today, Google's
 * analyzer refuses this form too. The refusal is the same whether or not the table exists, so it reveals nothing.
 */
function checkUnnest(run: Run, scope: Scope): void {
  const parts: string[] = []
  for (const piece of run) {
    if (piece.kind === 'nested' || !(isName(piece) || piece.key === '.')) return
    if (piece.key === '.') continue
    for (const part of piece.name.split('.')) parts.push(part)
  }
  const [first = ''] = parts
  if (parts.length < 3 || scope.has(first)) return
  throw refusedColumn(first, run[0]?.kind === 'nested' ? -1 : (run[0]?.at ?? -1))
}

/** WITH OFFSET adds a column, which is named by its alias or `offset`. */
function offsetOf({ sets }: Walk, offset: readonly Token[]): Columns {
  const last = offset.at(-1)
  return last === undefined ? NO_COLUMNS : sets.ofNames([last.name])
}

function resolvePivots(
  walk: Walk,
  item: Extract<FromItem, { pivots: unknown }>,
  ctes: Ctes | null,
  scope: Scope,
): void {
  for (const { run, alias } of item.pivots) {
    checkUnpivot(run)
    resolveRun(walk, run, ctes, scope)
    if (alias !== null) scope.add(entryOf(alias.name, NO_COLUMNS))
  }
}

function resolvePath(walk: Walk, path: Path, ctes: Ctes | null, scope: Scope): void {
  const [first = ''] = path.parts
  const cte = path.tokens.length === 1 && !first.includes('.') ? (ctes?.find(first) ?? null) : null
  const isArray = cte === null && path.parts.length > 1 && path.tokens[1]?.key === '.' && scope.has(first)
  if (isArray) return resolveArray(walk, path, scope)
  if (path.offset.length > 0) throw new Malformed('WITH OFFSET needs an array', path.offset[0]?.at ?? path.at)
  if (cte !== null) {
    walk.paths.set(path, { kind: 'cte' })
    scope.add(entryOf(path.alias?.name ?? first, cte))
    return
  }
  resolveTable(walk, path, scope)
}

function resolveArray(walk: Walk, path: Path, scope: Scope): void {
  const misplaced = path.sample[0] ?? path.pivots[0]?.run[0]
  if (misplaced !== undefined) throw new Malformed('an array takes neither a sample nor a pivot', path.at)
  const last = path.parts.at(-1) ?? ''
  walk.paths.set(path, { kind: 'array', implicit: path.alias === null ? last : null })
  scope.add(entryOf(path.alias?.name ?? last, offsetOf(walk, path.offset)))
}

function resolveTable(walk: Walk, path: Path, scope: Scope): void {
  const parts = path.parts.flatMap((part) => part.split('.'))
  const source = lookUp(walk, parts, path.at)
  const pseudo = source.pseudoColumns.filter((each) => walk.words.has(each.toLowerCase()))
  for (const each of pseudo) walk.renamed.set(each, ourName(walk.prefix, each))
  const exports = pseudo.map((each) => ourName(walk.prefix, each))
  if (exports.length > 0 && path.pivots.length > 0) throw refusedBeside('PIVOT', path.at)
  const implicit = path.alias === null && path.pivots.length === 0 ? (parts.at(-1) ?? null) : null
  const entry = scope.add(entryOf(path.alias?.name ?? implicit ?? '', walk.sets.ofTable(source), exports))
  if (path.pivots.length > 0) entry.isWhole = true
  walk.paths.set(path, { kind: 'table', source, entry, implicit })
}

/** Returns the same Source for a table even if the query spells the table in several ways. */
function lookUp(walk: Walk, parts: readonly string[], at: number): Source {
  const written = parts.join('.')
  const known = walk.spellings.get(written)
  if (known !== undefined) return known
  const made = sourceOf(walk.exposed, walk.work, parts, at)
  const id = `${made.dataset}.${made.table}`
  const source = walk.sources.get(id) ?? made
  walk.sources.set(id, source)
  walk.spellings.set(written, source)
  if (walk.sources.size > TABLES_MAX) {
    const why = `the query reads ${walk.sources.size} different tables, more than the bound of ${TABLES_MAX}`
    throw refusedLimit(
      'tables',
      why,
      at,
      'Read fewer tables at once, or read dated tables with a wildcard (`dataset.events_*`).',
    )
  }
  return source
}
