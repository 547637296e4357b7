// Walks a SELECT, VALUES or UNION: WITH, the select list, GROUP BY, ORDER BY. Each output gets an explicit name. All
// functions throw Refusal.
import { word, words, type Node, type SelectStmt, type Struct } from '../allowed/allowed-nodes.ts'
import { collects, countedRows, isClosed } from '../bounds/collected-rows.ts'
import { collectedIn, computedOnce, maxCollected, staysShort } from '../bounds/collected-values.ts'
import { aggregates } from '../bounds/unhashed.ts'
import { mostRuns, RUNS_MAX, runsOf, withoutLongRuns } from '../bounds/mark-runs.ts'
import { constant } from '../syntax/literals.ts'
import { outputName } from './output-names.ts'
import { ambiguousOutput, Refusal, refusedLimit, refusedStatement } from '../refusal.ts'
import { columnHere, reference, rowMeant, starColumns, unqualifiedHere, type ColumnOf } from './resolve-columns.ts'
import {
  addSort,
  checkColumns,
  distinctNames,
  newAlias,
  newLevel,
  type Cte,
  type CteColumn,
  type CteScope,
  type Level,
  type Walk,
} from './scope.ts'
import { outputValues, type Base, type Column, type Field, type SqlType, type Typed } from './from-items.ts'
import { checkUnified, unifiedType } from '../bounds/spatial.ts'
import { notePlace } from '../syntax/source-position.ts'
import {
  elements,
  expression,
  indirection,
  noteJoined,
  optional,
  sortKey,
  starFields,
  window,
} from './walk-expression.ts'
import { fromItems } from './walk-from.ts'

export interface Selected {
  readonly node: SelectStmt
  readonly outputs: readonly Field[]
}

/** Receives the outputs of the left arm of a UNION before the right arm is walked: a recursive CTE reads them. */
type OnLeft = (outputs: readonly Field[]) => void

/** Confines a query. `parent` is the outer query, if this query may refer to its columns. */
export function select(
  walk: Walk,
  raw: SelectStmt,
  parent: Level | null,
  outer: CteScope | null,
  onLeft?: OnLeft,
): Selected {
  walk.selects += 1
  walk.depth += 1
  const selected = selectAt(walk, raw, parent, outer, onLeft)
  walk.depth -= 1
  return selected
}

function selectAt(
  walk: Walk,
  raw: SelectStmt,
  parent: Level | null,
  outer: CteScope | null,
  onLeft?: OnLeft,
): Selected {
  const clause = raw.withClause && walkWith(walk, raw.withClause, parent, outer)
  const ctes = clause?.scope ?? outer
  const withClause = clause && { withClause: clause.node }
  if (raw.op !== 'SETOP_NONE') return setOperation(walk, raw, parent, ctes, withClause, onLeft)
  if (raw.valuesLists) return values(walk, raw, parent, ctes, withClause)
  return plain(walk, raw, newLevel(parent, ctes), withClause)
}

type With = { readonly withClause: Struct<'WithClause'> } | undefined

function plain(walk: Walk, raw: SelectStmt, level: Level, withClause: With): Selected {
  const fromClause = fromItems(walk, level, raw.fromClause ?? [])
  const targets = planTargets(walk, level, raw.targetList ?? [])
  level.phase = 'where'
  noteJoined(walk, raw.whereClause)
  const where = optional(walk, level, 'whereClause', raw.whereClause)
  const groups = groupBy(walk, level, raw.groupClause, targets)
  level.sets = Math.min(SETS_MAX, setsIn(raw.groupClause ?? []))
  level.phase = 'output'
  const outputs = targets.map((target) => ({ ...confinedTarget(walk, level, target), written: writtenAs(target) }))
  const having = optional(walk, level, 'havingClause', raw.havingClause)
  const windows = raw.windowClause?.map((node): Node => {
    if (!node.WindowDef) throw refusedStatement('WINDOW')
    return { WindowDef: window(walk, level, node.WindowDef) }
  })
  const distinct = raw.distinctClause && distinctOn(walk, level, raw.distinctClause, outputs)
  const sort = raw.sortClause && sortBy(walk, level, raw.sortClause, outputs)
  const grouped = groups && [...groups, ...level.ungrouped.values()]
  if (grouped || raw.distinctClause || raw.havingClause) walk.sorts = true
  if (grouped) {
    addSort(walk)
    walk.isGrouped = true
  }
  if (raw.distinctClause) addSort(walk)
  const node = {
    ...(distinct && { distinctClause: distinct }),
    targetList: outputs.map((output): Node => ({ ResTarget: { name: output.name, val: output.node } })),
    fromClause,
    ...where,
    ...(grouped && { groupClause: grouped }),
    ...(raw.groupDistinct && { groupDistinct: true as const }),
    ...having,
    ...(windows && { windowClause: windows }),
    ...(sort && { sortClause: sort }),
    ...limits(walk, raw, level),
    ...withClause,
    op: 'SETOP_NONE',
  }
  // PostgreSQL computes each row of such a query once.
  const isKept = grouped || raw.distinctClause || raw.limitCount || raw.limitOffset
  if (walk.collects && node.targetList.some(aggregates) && isClosed(walk, node)) {
    for (const { node: value } of outputs) computedOnce(value)
  }
  return {
    node,
    outputs: outputs.map(({ name, type, node: value }) => ({
      name,
      type,
      ...(!isKept && { made: [value] }),
      ...(walk.collects && { collected: collectedIn(value) }),
      ...(walk.exposed.comparesByIcu && { runs: runsOf(value) }),
    })),
  }
}

/** Confines LIMIT and OFFSET, which may refer to outer queries only. */
function limits(walk: Walk, raw: SelectStmt, { parent, ctes }: Level): Partial<SelectStmt> {
  const level = newLevel(parent, ctes)
  const { limitOption = 'LIMIT_OPTION_DEFAULT' } = raw
  if (!/^LIMIT_OPTION_(DEFAULT|COUNT|WITH_TIES)$/.test(limitOption)) throw refusedStatement(limitOption)
  return {
    ...optional(walk, level, 'limitOffset', raw.limitOffset),
    ...optional(walk, level, 'limitCount', raw.limitCount),
    limitOption,
  }
}

function values(walk: Walk, raw: SelectStmt, parent: Level | null, ctes: CteScope | null, withClause: With): Selected {
  const level = newLevel(parent, ctes)
  const rows = (raw.valuesLists ?? []).map((list) => elements(walk, level, list.List?.items))
  const outputs = (rows[0] ?? []).map((_, index) => {
    const runs = walk.exposed.comparesByIcu ? Math.max(...rows.map((row) => runsOf(row[index]?.node ?? {}))) : undefined
    const [only] = rows.length === 1 ? rows : []
    checkUnified(
      walk.exposed,
      rows.flatMap((row) => row[index] ?? []),
      undefined,
    )
    const collected = walk.collects ? Math.max(...rows.map((row) => collectedIn(row[index]?.node ?? {}))) : 0
    return {
      name: `column${index + 1}`,
      type: unifiedType(
        walk.exposed,
        rows.map((row) => row[index]?.type ?? null),
      ),
      // PostgreSQL copies the values of a single row to each place that reads them.
      ...(only?.[index] && { made: [only[index].node] }),
      ...(runs !== undefined && { runs }),
      collected,
    }
  })
  const valuesLists = rows.map((row): Node => ({ List: { items: row.map((item) => item.node) } }))
  const sort = raw.sortClause && sortBy(walk, level, raw.sortClause, outputs)
  const node = {
    valuesLists,
    ...(sort && { sortClause: sort }),
    ...limits(walk, raw, level),
    ...withClause,
    op: 'SETOP_NONE',
  }
  return { node, outputs }
}

const OPERATIONS: ReadonlySet<string> = new Set(['SETOP_UNION', 'SETOP_INTERSECT', 'SETOP_EXCEPT'])

function setOperation(
  walk: Walk,
  raw: SelectStmt,
  parent: Level | null,
  ctes: CteScope | null,
  withClause: With,
  onLeft?: OnLeft,
): Selected {
  const { op, larg, rarg } = raw
  if (!larg || !rarg || op === undefined || !OPERATIONS.has(op)) throw refusedStatement(op ?? 'UNION')
  const { weight } = walk
  const before = weight.joined
  const left = select(walk, larg, parent, ctes)
  const first = weight.joined
  onLeft?.(left.outputs)
  weight.joined = before
  const right = select(walk, rarg, parent, ctes)
  weight.joined = Math.max(first, weight.joined)
  for (const [index, output] of left.outputs.entries()) {
    const other = right.outputs[index]
    if (other) checkUnified(walk.exposed, [...outputValues(output), ...outputValues(other)], undefined)
  }
  const outputs = left.outputs.map(({ name, type }, index) => ({
    name,
    type: unifiedType(walk.exposed, [type, right.outputs[index]?.type ?? null]),
    made: [...(left.outputs[index]?.made ?? []), ...(right.outputs[index]?.made ?? [])],
    ...mostRuns(left.outputs[index], right.outputs[index]),
    collected: maxCollected(left.outputs[index], right.outputs[index]),
  }))
  const level = newLevel(parent, ctes)
  const sort = raw.sortClause && sortBy(walk, level, raw.sortClause, outputs)
  if (sort || raw.all !== true) walk.sorts = true
  if (raw.all !== true) addSort(walk)
  // For EXCEPT and INTERSECT, PostgreSQL keeps the rows in a hash table without a limit.
  const isKept = op !== 'SETOP_UNION'
  const what = op.slice('SETOP_'.length).toLowerCase()
  const node = {
    ...(sort && { sortClause: sort }),
    ...limits(walk, raw, level),
    ...withClause,
    op,
    ...(raw.all && { all: true as const }),
    larg: isKept ? countedRows(walk, left.node, left.outputs, what) : left.node,
    rarg: isKept ? countedRows(walk, right.node, right.outputs, what) : right.node,
  }
  return { node, outputs }
}

// WITH. Each common table expression (CTE) gets a generated name. If the guard misjudges a scope, the query fails with
// "does not exist", and never reads another table.

/** The maximum number of CTEs in one statement. The largest of 2,033 real queries has 15. */
const CTES_MAX = 100

interface Walked {
  readonly node: Struct<'WithClause'>
  readonly scope: CteScope
}

/** Confines a WITH clause. Returns it with the scope of its names. */
function walkWith(walk: Walk, clause: Struct<'WithClause'>, parent: Level | null, outer: CteScope | null): Walked {
  const raw = (clause.ctes ?? []).map((node) => {
    if (!node.CommonTableExpr) throw refusedStatement('WITH', clause.location)
    return node.CommonTableExpr
  })
  walk.ctes += raw.length
  if (walk.ctes > CTES_MAX)
    throw refusedLimit('WITH', `more than ${CTES_MAX} common table expressions`, clause.location)
  const isRecursive = clause.recursive === true
  const bodies: Body[] = []
  const byName = new Map<string, Body>()
  // Without RECURSIVE, a CTE sees only earlier CTEs. Inside it, its own name still means a table or an outer CTE.
  const scope: CteScope = { parent: outer, find: (name) => byName.get(name) }
  for (const each of raw) {
    const name = each.ctename ?? ''
    if (bodies.some((body) => body.name === name)) throw twice(name, each.location)
    const body = new Body(walk, each, { parent, scope, isRecursive })
    bodies.push(body)
    if (isRecursive) byName.set(name, body)
  }
  for (const body of bodies) {
    body.columns()
    byName.set(body.name, body)
  }
  const ctes = bodies.map((body): Node => ({ CommonTableExpr: body.confined() }))
  return { node: { ctes, ...(isRecursive && { recursive: true as const }) }, scope }
}

function twice(name: string, at: number | undefined): Refusal {
  return new Refusal(
    'table',
    name,
    `WITH defines ${name} more than once`,
    'Give each common table expression its own name.',
    at,
  )
}

interface Where {
  readonly parent: Level | null
  readonly scope: CteScope
  readonly isRecursive: boolean
}

/** One CTE. It is walked at its first use, because RECURSIVE allows a use before the definition. */
class Body implements Cte {
  readonly name: string
  readonly alias: string
  readonly weight = { items: 0, joined: 0, sorts: 0, ctes: new Map<Cte, number>() }
  readonly materialized: string | undefined
  readonly depth: number
  references = 0
  #state: 'waiting' | 'walking' | 'done' = 'waiting'
  #columns: readonly Field[] | undefined
  #node: Struct<'CommonTableExpr'> | undefined
  #refersToItself = false
  readonly #walk: Walk
  readonly #raw: Struct<'CommonTableExpr'>
  readonly #where: Where

  constructor(walk: Walk, raw: Struct<'CommonTableExpr'>, where: Where) {
    this.name = raw.ctename ?? ''
    this.alias = newAlias(walk, 'c', this.name)
    this.materialized = raw.ctematerialized
    this.depth = walk.depth
    this.#walk = walk
    this.#raw = raw
    this.#where = where
  }

  isRecursive(): boolean {
    return this.#refersToItself
  }

  /** Returns the columns of the CTE. Inside the CTE itself, returns the columns of its first arm. */
  columns(): readonly CteColumn[] {
    if (this.#state === 'waiting') this.#walkBody()
    if (this.#state === 'walking') this.#refersToItself = true
    if (!this.#columns) {
      const why = `table ${this.name} refers to itself where that is not allowed`
      const hint = 'In WITH RECURSIVE, only the second arm of UNION may refer to the expression itself.'
      throw new Refusal('table', this.name, why, hint, this.#raw.location)
    }
    const added = this.#added().map((name) => ({ name, type: null, added: true }))
    return [...this.#columns, ...added]
  }

  confined(): Struct<'CommonTableExpr'> {
    if (!this.#node) throw new TypeError('a common table expression that was never walked')
    return this.#node
  }

  #walkBody(): void {
    const query = this.#raw.ctequery?.SelectStmt
    const tag = Object.keys(this.#raw.ctequery ?? {})[0] ?? 'WITH'
    if (!query) throw refusedStatement(tag, this.#raw.location)
    this.#state = 'walking'
    const { weight } = this.#walk
    this.#walk.weight = this.weight
    const { parent, scope, isRecursive } = this.#where
    const onLeft = (outputs: readonly Field[]): void => {
      // Values of an earlier iteration are bounded like all values.
      if (!isRecursive) return
      this.#columns = this.#named(outputs).map((field) => {
        return { ...field, runs: RUNS_MAX, collected: staysShort(field) ? 0 : Infinity }
      })
    }
    const { node: made, outputs } = select(this.#walk, query, parent, scope, onLeft)
    const node = this.#refersToItself ? this.#counted(made, outputs) : made
    this.#walk.weight = weight
    this.#columns = this.#named(outputs)
    this.#state = 'done'
    const names = distinctNames(this.#columns.map((column) => column.name))
    this.#node = {
      ctename: this.alias,
      ...(names.length > 0 && { aliascolnames: names.map(word) }),
      ctematerialized: this.#materialized(),
      ctequery: { SelectStmt: node },
      ...this.#search(),
      ...this.#cycle(),
    }
  }

  /** Adds a counter to a recursive UNION. PostgreSQL keeps all its rows, to find duplicates. */
  #counted(query: SelectStmt, outputs: readonly Field[]): SelectStmt {
    const { larg, rarg } = query
    if (query.op !== 'SETOP_UNION' || query.all || !larg || !rarg) return query
    if (this.#raw.search_clause ?? this.#raw.cycle_clause) {
      const why = 'SEARCH and CYCLE need UNION ALL: a recursive UNION keeps all rows in memory'
      throw new Refusal('limit', 'UNION', why, 'Write UNION ALL in the recursive query.', this.#raw.location)
    }
    const counted = (arm: SelectStmt): SelectStmt => countedRows(this.#walk, arm, outputs, 'union')
    return { ...query, larg: counted(larg), rarg: counted(rarg) }
  }

  #named(outputs: readonly Field[]): readonly Field[] {
    const given = words(this.#raw.aliascolnames)
    if (given.length > outputs.length) {
      const why = `table ${this.name} has ${outputs.length} columns, but its list names ${given.length}`
      throw new Refusal('table', this.name, why, `Name at most ${outputs.length} columns.`, this.#raw.location)
    }
    const isKept = this.materialized === 'CTEMaterializeAlways'
    return outputs.map(({ name, type, made, runs, collected }, index) => ({
      name: given[index] ?? name,
      type,
      ...(!isKept && made && { made }),
      ...(runs !== undefined && { runs }),
      ...(collected !== undefined && { collected }),
    }))
  }

  #materialized(): string {
    const { ctematerialized = 'CTEMaterializeDefault' } = this.#raw
    if (!/^CTEMaterialize(Default|Always|Never)$/.test(ctematerialized)) throw refusedStatement('MATERIALIZED')
    return ctematerialized
  }

  /** Returns the columns that SEARCH and CYCLE add after the CTE's own columns. */
  #added(): string[] {
    const { search_clause: search, cycle_clause: cycle } = this.#raw
    return [search?.search_seq_column, cycle?.cycle_mark_column, cycle?.cycle_path_column].filter(
      (name) => name !== undefined,
    )
  }

  #search(): Pick<Struct<'CommonTableExpr'>, 'search_clause'> {
    const search = this.#raw.search_clause
    if (!search) return {}
    return {
      search_clause: {
        search_col_list: words(search.search_col_list).map(word),
        ...(search.search_breadth_first && { search_breadth_first: true as const }),
        search_seq_column: search.search_seq_column ?? '',
      },
    }
  }

  #cycle(): Pick<Struct<'CommonTableExpr'>, 'cycle_clause'> {
    const cycle = this.#raw.cycle_clause
    if (!cycle) return {}
    return {
      cycle_clause: {
        cycle_col_list: words(cycle.cycle_col_list).map(word),
        cycle_mark_column: cycle.cycle_mark_column ?? '',
        cycle_mark_value: mark(cycle.cycle_mark_value, cycle.location),
        cycle_mark_default: mark(cycle.cycle_mark_default, cycle.location),
        cycle_path_column: cycle.cycle_path_column ?? '',
      },
    }
  }
}

/** Confines TO and DEFAULT of CYCLE, which must be literals. */
function mark(node: Node | undefined, at: number | undefined): Node {
  if (!node?.A_Const) throw refusedStatement('CYCLE … TO a value that is not a literal', at)
  return constant(node.A_Const)
}

// The select list: expands stars and names each output.

/** An output before it is walked. GROUP BY is walked earlier, and may refer to an output by number or name. */
type Target =
  /** A column of `*`. `from` is the node of the star. */
  | { readonly kind: 'column'; readonly name: string; readonly of: ColumnOf; readonly from: Node }
  | { readonly kind: 'field'; readonly name: string; readonly of: Struct<'A_Indirection'> }
  | { readonly kind: 'expression'; readonly name: string; readonly given: string | undefined; readonly node: Node }

interface Output {
  readonly name: string
  readonly node: Node
  readonly type: SqlType | null
}

/** PostgreSQL's limit for the grouping sets of one SELECT. */
const SETS_MAX = 4_096

/** Returns the number of grouping sets: the product of the numbers of sets in the elements of GROUP BY. */
function setsIn(clause: readonly Node[]): number {
  return clause.reduce((product, { GroupingSet: set }) => {
    const content = set?.content ?? []
    if (set?.kind === 'GROUPING_SET_ROLLUP') return product * (content.length + 1)
    if (set?.kind === 'GROUPING_SET_CUBE') return product * 2 ** content.length
    return set?.kind === 'GROUPING_SET_SETS'
      ? product * content.reduce((sum, each) => sum + setsIn([each]), 0)
      : product
  }, 1)
}

/** Expands a select list into its outputs, in order. */
function planTargets(walk: Walk, level: Level, list: readonly Node[]): Target[] {
  const targets = list.flatMap((node): Target[] => {
    const target = node.ResTarget
    if (!target?.val) throw refusedStatement('a select list')
    const { val, name } = target
    if (val.ColumnRef?.fields?.some((field) => field.A_Star))
      return columnTargets(starColumns(walk, level, val.ColumnRef), val)
    const of = val.A_Indirection
    if (of?.indirection?.at(-1)?.A_Star) return starTargets(walk, level, of)
    return [{ kind: 'expression', name: name ?? nameFor(walk, val), given: name, node: val }]
  })
  checkColumns(targets.length)
  return targets
}

function columnTargets(columns: readonly ColumnOf[], from: Node): Target[] {
  return columns.map((of) => ({ kind: 'column', name: of.column.name, of, from }))
}

/** Expands (t).* to the columns of table t, and (x).* of a composite value to its fields. */
function starTargets(walk: Walk, level: Level, of: Struct<'A_Indirection'>): Target[] {
  const { arg, indirection: steps = [] } = of
  const row = steps.length === 1 ? arg?.ColumnRef : undefined
  if (row && isRow(walk, level, row)) {
    const fields = [...(row.fields ?? []).filter((field) => !field.A_Star), { A_Star: {} }]
    return columnTargets(starColumns(walk, level, { ...row, fields }), { A_Indirection: of })
  }
  return starFields(walk, level, of).map(({ name }) => ({
    kind: 'field',
    name,
    of: { ...(arg && { arg }), indirection: [...steps.slice(0, -1), { String: { sval: name } }] },
  }))
}

function isRow(walk: Walk, level: Level, row: Struct<'ColumnRef'>): boolean {
  return rowMeant(walk, level, row) !== undefined
}

/** Confines an output and gives it its name. */
function confinedTarget(walk: Walk, level: Level, target: Target): Output {
  if (target.kind === 'column') {
    const { node, type } = reference(walk, target.of.column, target.of.level)
    notePlace(walk.places, node, target.from)
    return { name: target.name, node, type }
  }
  if (target.kind === 'field')
    return { name: target.name, ...withoutLongRuns(walk, indirection(walk, level, target.of), undefined) }
  const { node, type } = expression(walk, level, target.node)
  return { name: target.given ?? nameFor(walk, target.node), node, type }
}

function nameFor(walk: Walk, node: Node): string {
  return outputName(node, { major: walk.exposed.major, subLink: (link) => walk.sublinkNames.get(link) })
}

// GROUP BY. If a name or number refers to an output, the output's number is printed. PostgreSQL lets a query that
// groups by a primary key read the other columns of the table. The printed sub-select of the table has no key, so these
// columns are added to GROUP BY.

const SETS: ReadonlySet<string> = new Set([
  'GROUPING_SET_EMPTY',
  'GROUPING_SET_ROLLUP',
  'GROUPING_SET_CUBE',
  'GROUPING_SET_SETS',
])

/** Confines GROUP BY. Records in `level` the tables whose primary key it contains. */
function groupBy(
  walk: Walk,
  level: Level,
  clause: readonly Node[] | undefined,
  targets: readonly Target[],
): Node[] | undefined {
  if (!clause) return undefined
  level.phase = 'group'
  const grouping: Grouping = { targets, places: new Map() }
  const out = clause.map((node) => groupItem(walk, level, node, grouping))
  if (!clause.some((node) => node.GroupingSet)) cover(level, flatten(clause), walk, grouping)
  return out
}

interface Grouping {
  readonly targets: readonly Target[]
  /** The index of the output that each name means, or -1 if the name means a column. */
  readonly places: Map<string, number>
}

function groupItem(walk: Walk, level: Level, node: Node, targets: Grouping): Node {
  const set = node.GroupingSet
  if (set) {
    if (set.kind === undefined || !SETS.has(set.kind)) throw refusedStatement('GROUPING SETS', set.location)
    const content = set.content?.map((item) => groupItem(walk, level, item, targets))
    return { GroupingSet: { kind: set.kind, ...(content && { content }) } }
  }
  const row = node.RowExpr
  if (row?.row_format === 'COERCE_IMPLICIT_CAST') {
    const args = (row.args ?? []).map((item) => groupItem(walk, level, item, targets))
    return { RowExpr: { args, row_format: row.row_format } }
  }
  const place = positionMeant(walk, level, node, targets)
  level.groupsExpressions ||= place === undefined && !node.ColumnRef
  if (walk.exposed.comparesByIcu) noteGrouped(level, place === undefined ? node : targets.targets[place - 1])
  if (place !== undefined) {
    const target = targets.targets[place - 1]
    level.groupsExpressions ||= target?.kind === 'field' || (target?.kind === 'expression' && !target.node.ColumnRef)
    const constant: Node = { A_Const: { ival: { ival: place } } }
    notePlace(walk.places, constant, node)
    return constant
  }
  return expression(walk, level, node).node
}

/** Records an expression of GROUP BY, or of the output that GROUP BY names, for joined() in walk-expression.ts. */
function noteGrouped({ grouped }: Level, item: Node | Target | undefined): void {
  const node = item && 'kind' in item ? (item.kind === 'expression' ? item.node : undefined) : item
  if (node) grouped.add(textOf(node))
}

/** Returns the number of the output that a node of GROUP BY means. An unqualified name means a column of FROM first. */
function positionMeant(walk: Walk, level: Level, node: Node, { targets, places }: Grouping): number | undefined {
  if (node.A_Const?.ival) return node.A_Const.ival.ival
  const ref = node.ColumnRef
  const name = ref?.fields?.length === 1 ? ref.fields[0]?.String?.sval : undefined
  if (name === undefined) return undefined
  const index = places.get(name) ?? positionOf(walk, level, name, targets, ref?.location)
  places.set(name, index)
  return index < 0 ? undefined : index + 1
}

function positionOf(
  walk: Walk,
  level: Level,
  name: string,
  targets: readonly Target[],
  at: number | undefined,
): number {
  if (unqualifiedHere(level, name, at)) return -1
  const index = targets.findIndex((target) => target.name === name)
  if (index < 0) return index
  const first = meaning(walk, level, targets[index])
  for (const other of targets.slice(index + 1)) {
    if (other.name === name && meaning(walk, level, other) !== first) throw ambiguousOutput(name, at)
  }
  return index
}

/** Returns a value that is equal for equal outputs: the column, or the parse tree as a string. */
function meaning(walk: Walk, level: Level, target: Target | undefined): unknown {
  if (target?.kind === 'column') return target.of.column
  const node = target?.kind === 'expression' ? target.node : undefined
  const column = node?.ColumnRef && columnHere(walk, level, node.ColumnRef)
  return column ?? textOf(node)
}

/** Expands (a, b) to a and b. */
function flatten(nodes: readonly Node[]): Node[] {
  return nodes.flatMap((node) => {
    const row = node.RowExpr
    return row?.row_format === 'COERCE_IMPLICIT_CAST' ? flatten(row.args ?? []) : [node]
  })
}

/** Records the tables whose whole primary key is in GROUP BY. */
function cover(level: Level, items: readonly Node[], walk: Walk, grouping: Grouping): void {
  const grouped = new Map<Base, Set<string>>()
  for (const node of items) {
    const origin = columnGrouped(walk, level, node, grouping)?.origin
    if (!origin) continue
    const names = grouped.get(origin.base) ?? new Set()
    grouped.set(origin.base, names.add(origin.column))
  }
  for (const [base, names] of grouped) {
    const { primaryKey } = base.table
    if (primaryKey.length > 0 && primaryKey.every((name) => names.has(name))) level.covered.set(base, names)
  }
}

function columnGrouped(walk: Walk, level: Level, node: Node, grouping: Grouping): Column | undefined {
  const place = positionMeant(walk, level, node, grouping)
  const target = place === undefined ? undefined : grouping.targets[place - 1]
  if (target?.kind === 'column') return target.of.column
  const meant = target ? (target.kind === 'expression' ? target.node : undefined) : node
  return meant?.ColumnRef && columnHere(walk, level, meant.ColumnRef)
}

// ORDER BY and DISTINCT ON. An unqualified name means an output first, then a column. The output's number is printed
// instead of its name, so that the server cannot resolve the name differently.

/**
 * Confines ORDER BY. For UNION, INTERSECT, EXCEPT and VALUES, `outputs` have no nodes: sort keys can only mean outputs.
 */
function sortBy(walk: Walk, level: Level, clause: readonly Node[], outputs: readonly SortOutput[]): Node[] {
  walk.sorts = true
  addSort(walk)
  const places = new Map<string, number>()
  return clause.map(({ SortBy: sort }) => {
    if (!sort?.node) throw refusedStatement('ORDER BY')
    return sortKey(walk, sort, outputOr(walk, level, sort.node, outputs, places))
  })
}

interface SortOutput extends Field {
  readonly node?: Node
  /** The caller's expression as a string, if it has a sub-query or a collecting aggregate. */
  readonly written?: string | undefined
}

/**
 * Returns the text of an expression that gets new aliases each time it is printed. PostgreSQL would not recognize such
 * a sort key as the same expression as an output.
 */
function writtenAs(target: Target): string | undefined {
  return target.kind === 'expression' ? aliased(target.node) : undefined
}

function aliased(node: Node): string | undefined {
  return isAliased(node) ? textOf(node) : undefined
}

function isAliased(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  if ('SubLink' in value || 'JsonArrayAgg' in value || 'JsonObjectAgg' in value) return true
  if ('funcname' in value && Array.isArray(value.funcname) && collects(words(value.funcname).at(-1) ?? '')) return true
  return Object.values(value).some(isAliased)
}

/** Returns a parse tree as a string, without positions. */
export function textOf(node: Node | undefined): string {
  return JSON.stringify(node, (key, value: unknown) => (key === 'location' ? undefined : value))
}

function distinctOn(walk: Walk, level: Level, clause: readonly Node[], outputs: readonly SortOutput[]): Node[] {
  const places = new Map<string, number>()
  return clause.map((node) => (Object.keys(node).length === 0 ? {} : outputOr(walk, level, node, outputs, places).node))
}

/**
 * Returns the number of an output if an unqualified name means it or sameOutput() finds it. Otherwise returns the
 * confined expression. `places` caches the numbers by name.
 */
function outputOr(
  walk: Walk,
  level: Level,
  node: Node,
  outputs: readonly SortOutput[],
  places: Map<string, number>,
): Typed {
  const ref = node.ColumnRef
  const name = ref?.fields?.length === 1 ? ref.fields[0]?.String?.sval : undefined
  const index =
    name === undefined ? sameOutput(node, outputs) : (places.get(name) ?? outputIndex(name, outputs, ref?.location))
  if (name !== undefined) places.set(name, index)
  const meant = outputs[index]
  if (!meant) return expression(walk, level, node)
  const place: Node = { A_Const: { ival: { ival: index + 1 } } }
  notePlace(walk.places, place, node)
  return { node: place, type: meant.type }
}

/** Returns the index of the output that the caller wrote like this expression, or -1. */
function sameOutput(node: Node, outputs: readonly SortOutput[]): number {
  const written = outputs.some((output) => output.written !== undefined) ? aliased(node) : undefined
  return written === undefined ? -1 : outputs.findIndex((output) => output.written === written)
}

/** Returns the index of the first output with this name, or -1. Throws Refusal if another such output differs. */
function outputIndex(name: string, outputs: readonly SortOutput[], at: number | undefined): number {
  const index = outputs.findIndex((output) => output.name === name)
  if (index < 0) return index
  const text = JSON.stringify(outputs[index]?.node)
  for (const other of outputs.slice(index + 1)) {
    if (other.name === name && JSON.stringify(other.node) !== text) throw ambiguousOutput(name, at)
  }
  return index
}
