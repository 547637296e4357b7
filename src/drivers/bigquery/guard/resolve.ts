// The walk over a parsed query: says of every path in FROM whether it is a WITH query, an array of something in sight, or
// an exposed table, and refuses the rest. It changes nothing; print.ts prints what it found.
import type { PrintedColumns } from './columns.ts'
import type { Exposed } from './exposed.ts'
import type { Cte, From, FromItem, FromPart, Operand, Path, Pipe, Query, Run, Select, Star, With } from './nodes.ts'
import { checkField, checkFields, checkStar, checkUsing, ourName, readWhole, refusedBeside } from './pseudo.ts'
import { Broken, refusedLimit } from './refusal.ts'
import { cteOf, Scope, type Columns, type Ctes, type Entry } from './scope.ts'
import { sourceOf, type Source } from './source.ts'
import { isName, type Token } from './tokens.ts'

const TABLES_MAX = 50

export type Resolved =
  | { readonly kind: 'cte' }
  /** Printed as UNNEST, so that it can never be read as a table. */
  | { readonly kind: 'array'; readonly implicit: string | null }
  | { readonly kind: 'table'; readonly source: Source; readonly entry: Entry; readonly implicit: string | null }

export interface Walk {
  readonly exposed: Exposed
  /** Names that the text holds anywhere, in lower case. */
  readonly words: ReadonlySet<string>
  /** What our aliases begin with. */
  readonly prefix: string
  readonly printed: PrintedColumns
  readonly paths: Map<Path, Resolved>
  /** Our names to be taken out of a star. */
  readonly stars: Map<Star, readonly string[]>
  /** By dataset and table. */
  readonly sources: Map<string, Source>
  /** By what the caller wrote. */
  readonly spellings: Map<string, Source>
  /** Our names of the pseudo columns in use, by the caller's, in capitals. */
  readonly renamed: Map<string, string>
}

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
  const names = new Set<string>()
  const columns: Columns[number][] = [names]
  for (const item of select.items) {
    if (item.kind === 'star') {
      columns.push(...resolveStar(walk, item, scope))
      resolveRun(walk, isNamed(item.of) ? [] : item.of, ctes, scope)
      resolveRun(walk, item.replace, ctes, scope)
      continue
    }
    resolveRun(walk, item.run, ctes, scope)
    if (select.head.some(({ key }) => key === 'STRUCT')) checkField(item.run, walk.renamed)
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
function resolveRun(walk: Walk, run: Run, ctes: Ctes | null, scope: Scope | null): void {
  checkFields(run, walk.renamed)
  for (const [index, piece] of run.entries()) {
    if (piece.kind === 'nested') {
      resolveQuery(walk, piece.query, ctes, scope)
      continue
    }
    if (!isName(piece)) continue
    const [before, after] = [run[index - 1], run[index + 1]]
    if (isKey(before, '.') || isKey(after, '.') || isKey(after, '(') || isKey(before, 'AS')) continue
    const entry = scope?.item(piece.name) ?? null
    if (entry === null) continue
    entry.isWhole = true
    if (entry.exports.length > 0) throw refusedBeside(`a row of ${piece.name} as one value`, piece.at)
  }
}

function isKey(piece: Run[number] | undefined, key: string): boolean {
  return piece !== undefined && piece.kind !== 'nested' && piece.key === key
}

/** Fills `scope` item by item: what comes later sees what came before. */
function resolveFrom(walk: Walk, from: From, ctes: Ctes | null, outer: Scope | null, scope: Scope): void {
  for (const part of from.parts) resolvePart(walk, part, ctes, outer, scope)
}

function resolvePart(walk: Walk, part: FromPart, ctes: Ctes | null, outer: Scope | null, scope: Scope): void {
  resolveItem(walk, part.item, ctes, outer, scope)
  for (const condition of part.conditions) {
    checkUsing(condition, walk.renamed)
    resolveRun(walk, condition, ctes, scope)
  }
  if (part.joiner.some(({ key }) => key === 'NATURAL')) readWhole(scope, 'NATURAL JOIN')
}

function resolveItem(walk: Walk, item: FromItem, ctes: Ctes | null, outer: Scope | null, scope: Scope): void {
  switch (item.kind) {
    case 'parenthesised':
      resolveFrom(walk, item.from, ctes, outer, scope)
      return
    case 'unnest':
      resolveRun(walk, item.run, ctes, scope)
      scope.add(entryOf(item.alias?.name ?? '', offsetOf(item.offset)))
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

function entryOf(alias: string, columns: Columns, exports: readonly string[] = []): Entry {
  return { alias: alias.toLowerCase(), columns, exports, isWhole: false }
}

/** WITH OFFSET names a column: its alias, or `offset`. */
function offsetOf(offset: readonly Token[]): Columns {
  const last = offset.at(-1)
  return last === undefined ? [] : [new Set([last.name.toLowerCase()])]
}

function resolvePivots(
  walk: Walk,
  item: Extract<FromItem, { pivots: unknown }>,
  ctes: Ctes | null,
  scope: Scope,
): void {
  for (const { run, alias } of item.pivots) {
    resolveRun(walk, run, ctes, scope)
    if (alias !== null) scope.add(entryOf(alias.name, []))
  }
}

function resolvePath(walk: Walk, path: Path, ctes: Ctes | null, scope: Scope): void {
  const [first = ''] = path.parts
  const cte = path.tokens.length === 1 && !first.includes('.') ? cteOf(ctes, first) : null
  const isArray = cte === null && path.parts.length > 1 && path.tokens[1]?.key === '.' && scope.has(first)
  if (isArray) return resolveArray(walk, path, scope)
  if (path.offset.length > 0) throw new Broken('WITH OFFSET needs an array', path.offset[0]?.at ?? path.at)
  if (cte !== null) {
    walk.paths.set(path, { kind: 'cte' })
    scope.add(entryOf(path.alias?.name ?? first, cte.columns))
    return
  }
  resolveTable(walk, path, scope)
}

function resolveArray(walk: Walk, path: Path, scope: Scope): void {
  const misplaced = path.sample[0] ?? path.pivots[0]?.run[0]
  if (misplaced !== undefined) throw new Broken('an array takes neither a sample nor a pivot', path.at)
  const last = path.parts.at(-1) ?? ''
  walk.paths.set(path, { kind: 'array', implicit: path.alias === null ? last : null })
  scope.add(entryOf(path.alias?.name ?? last, offsetOf(path.offset)))
}

function resolveTable(walk: Walk, path: Path, scope: Scope): void {
  const parts = path.parts.flatMap((part) => part.split('.'))
  const source = lookUp(walk, parts, path.at)
  const pseudo = source.pseudoColumns.filter((each) => walk.words.has(each.toLowerCase()))
  for (const each of pseudo) walk.renamed.set(each, ourName(walk.prefix, each))
  const exports = pseudo.map((each) => ourName(walk.prefix, each))
  if (exports.length > 0 && path.pivots.length > 0) throw refusedBeside('PIVOT', path.at)
  const implicit = path.alias === null && path.pivots.length === 0 ? (parts.at(-1) ?? null) : null
  const entry = scope.add(entryOf(path.alias?.name ?? implicit ?? '', [source.names], exports))
  if (path.pivots.length > 0) entry.isWhole = true
  walk.paths.set(path, { kind: 'table', source, entry, implicit })
}

/** One Source for a table, however it is spelt. */
function lookUp(walk: Walk, parts: readonly string[], at: number): Source {
  const written = parts.join('.')
  const known = walk.spellings.get(written)
  if (known !== undefined) return known
  const made = sourceOf(walk.exposed, parts, at)
  const id = `${made.dataset}.${made.table}`
  const source = walk.sources.get(id) ?? made
  walk.sources.set(id, source)
  walk.spellings.set(written, source)
  if (walk.sources.size > TABLES_MAX) {
    throw refusedLimit('tables', `the query reads more than ${TABLES_MAX} different tables`, at)
  }
  return source
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
