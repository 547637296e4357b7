// Bounds what PostgreSQL copies for each partition. It plans each partition, each child that inherits, each table of a
// view, and each arm of UNION ALL with a copy of the conditions and outputs that apply to it: over 365 partitions, 1,000
// conditions in OR (15 kB) took 1.2 GB. Constants that would exclude partitions are not relied on.
import { isNode, words, type Node, type SelectStmt, type Struct } from '../allowed/allowed-nodes.ts'
import type { ListParam, ListParams } from '../../confined-query.ts'
import type { Exposed } from '../exposed.ts'
import type { Denied } from '../../../driver.ts'
import { Refusal } from '../refusal.ts'
import type { Walk } from '../walk/scope.ts'
import { hasParam, literalText, varies } from './argument-bounds.ts'
import { hasWindow } from './collected-values.ts'
import { copiedSides, isConstant, madeBehind, remembered } from './printed-size.ts'
import { aggregates, piecesOf, references } from './unhashed.ts'
import { endsOf } from './value-growth.ts'

/** The maximum number of nodes in all copies. A node took up to 1.2 kB. */
const NODES_MAX = 400_000
/** What PostgreSQL plans for a partition besides the copies. */
const OWN = 30
/** The same, for each further partitioned table that is joined: ten tables of 365 partitions took 400 MB. */
const JOINED = 10
/** A sub-query in a condition. The planner plans it once, and copies what refers to it. */
const SUB_QUERY = 30
/** A node in OR, or in a list of rows, for which PostgreSQL tries the indexes: 670 MB at the limit of others. */
const IN_OR = 1.5
/** An output that nothing sorts or groups by. */
const OUTPUT = 0.5
/** An element of a list of constants, for which the planner keeps 330 bytes. */
const ELEMENT = 0.5
/** The maximum number of rows in the hash tables of EXISTS, which take 80 bytes each. */
const HASHED_MAX = 1_000_000
/** The assumed elements of a list of constants that the text does not show. */
const UNKNOWN_ELEMENTS = 20_000

/** What a part of FROM multiplies. */
interface Reach {
  /** The tables that PostgreSQL plans with a condition on the part. */
  readonly tables: number
  /** The tables that it plans with the outputs of a query that reads only this part. */
  readonly outputs: number
}

interface Planned extends Reach {
  readonly nodes: number
  /** The partitioned tables that the part brings into a join around it, and all their partitions. */
  readonly joined: number
  readonly partitions: number
  /** The part of `nodes` for such joins. */
  readonly joins: number
}

const ONE: Planned = { tables: 1, outputs: 1, nodes: 0, joined: 0, partitions: 0, joins: 0 }

/**
 * Returns whether checkPartitions() must walk the query, because it may plan many copies. `words` has the names and short
 * strings of the text. Without partitions and these words, a printed node counts as 9 nodes at most.
 */
export function mayCopy({ bases, ctes, params, printed }: Walk, words: ReadonlySet<string>): boolean {
  const isPartitioned = bases.some(({ base }) => base.table.tables > 1)
  const isLong = printed * 9 > NODES_MAX || params.slots.length > 0 || ctes > 0
  return isPartitioned || isLong || COPYING.some((word) => words.has(word))
}

/** Arms of UNION ALL, what endsOf() counts, and arrays, whose elements are not printed nodes. */
const COPYING = ['SETOP_UNION', 'min', 'max', 'AEXPR_OP_ANY', 'AEXPR_OP_ALL']

/**
 * Checks the copies of a confined query. Changes EXISTS that could get large hash tables. Returns the parameters whose
 * lengths matter, or null. Throws Refusal.
 */
export function checkPartitions(query: SelectStmt, exposed: Exposed): ListParams | null {
  const copies = new Copies(exposed)
  const nodes = copies.read(query)
  if (nodes > NODES_MAX) {
    const { name, tables } = copies.largest
    const what = tables > 1 ? `table ${name} has ${tables} partitions or other tables in it` : 'UNION ALL has many arms'
    const why = `PostgreSQL would plan ${Math.ceil(nodes)} expressions, because ${what}, and each gets a copy of the conditions and outputs`
    throw new Refusal('limit', 'partitions', `${why}; the limit is ${NODES_MAX}`, HINT, undefined)
  }
  const { lists } = copies
  return lists.length === 0 ? null : { lists, most: Math.floor((NODES_MAX - nodes) / ELEMENT) }
}

/** Returns why the lists in these parameters are too long, or null. */
export function longLists({ lists, most }: ListParams, texts: readonly (string | null)[]): Denied | null {
  const elements = sumOf(lists, ({ number, tables, isDirect }) => {
    const text = texts[number - 1] ?? ''
    return tables * (isDirect ? text.split(',').length : Math.max(1, text.length))
  })
  if (elements <= most) return null
  const why = `PostgreSQL would plan ${elements} elements of lists in parameters, because each partition or other table in a table gets a copy of the conditions; the limit for this query is ${most}`
  return { kind: 'denied', blocked: { kind: 'limit', name: 'partitions' }, why, hint: HINT }
}

const HINT =
  "Read the partitions once, with few conditions and outputs, and put the others outside: WITH v AS MATERIALIZED (SELECT id, day FROM t WHERE day >= '2024-01-01') SELECT … FROM v WHERE …. Write a long list of values as JOIN (VALUES (1), (2)) AS l(x) ON l.x = v.id. Join fewer partitioned tables at once."

class Copies {
  readonly lists: ListParam[] = []
  /** The table with the most partitions. */
  largest = { name: '', tables: 1 }
  /** The rows in the hash tables of EXISTS. */
  #hashed = 0
  readonly #exposed: Exposed
  /** What each alias multiplies. */
  readonly #reach = new Map<string, Reach>()
  /** The number of columns of each alias. */
  readonly #columns = new Map<string, number>()
  readonly #ctes = new Map<string, { readonly planned: Planned; readonly isInlined: boolean; isRead: boolean }>()
  /** How often the query refers to each WITH. */
  readonly #uses = new Map<string, number>()
  readonly #known = new WeakMap<object, Planned>()
  readonly #inside = new WeakMap<object, number>()
  readonly #own = new WeakMap<object, number>()

  constructor(exposed: Exposed) {
    this.#exposed = exposed
  }

  /** Returns the nodes of all copies. */
  read(query: SelectStmt): number {
    this.#countUses(query, new Set())
    return this.#select(query).nodes
  }

  #countUses(value: unknown, seen: Set<unknown>): void {
    if (!isNode(value) || seen.has(value)) return
    seen.add(value)
    const { schemaname, relname } = value.RangeVar ?? {}
    if (relname !== undefined && schemaname === undefined) this.#uses.set(relname, (this.#uses.get(relname) ?? 0) + 1)
    for (const part of Object.values(value)) this.#countUses(part, seen)
  }

  #select(query: SelectStmt): Planned {
    const known = this.#known.get(query)
    if (known) return known
    const planned = this.#planned(query)
    this.#known.set(query, planned)
    return planned
  }

  #planned(query: SelectStmt): Planned {
    const {
      withClause,
      larg,
      rarg,
      fromClause = [],
      whereClause,
      havingClause,
      limitCount,
      limitOffset,
      ...rest
    } = query
    const before = sumOf(withClause?.ctes ?? [], ({ CommonTableExpr: cte }) => this.#cte(cte))
    const isLimited = (limitCount ?? limitOffset) !== undefined
    const limits = this.#within([limitCount, limitOffset])
    if (larg && rarg) {
      const [left, right] = [this.#select(larg), this.#select(rarg)]
      const nodes = before + limits + left.nodes + right.nodes + this.#within(rest)
      return { ...ONE, nodes, tables: isLimited ? 1 : left.tables + right.tables }
    }
    const items = fromClause.map((item) => this.#item(item))
    const [first = ONE, second] = items
    const only = second || fromClause[0]?.JoinExpr ? undefined : first
    const conditions = [...partsOf(whereClause), ...partsOf(havingClause)]
    const { targetList = [], groupClause, distinctClause, sortClause, windowClause } = rest
    const keys = [groupClause, distinctClause, sortClause, windowClause].flatMap((clause) => clause ?? [])
    const values = targetList.flatMap(({ ResTarget: target }) => target?.val ?? [])
    const own =
      sumOf(items, (item) => item.nodes) +
      sumOf(conditions, (part) => this.#condition(part, only)) +
      this.#outputs(values, only) * (keys.length > 0 ? 1 : OUTPUT) +
      this.#outputs(keys, only) +
      this.#within(rest)
    const all = [...items, ...conditions.flatMap((part) => this.#semiJoined(part))]
    const [joined, partitions] = [sumOf(all, (each) => each.joined), sumOf(all, (each) => each.partitions)]
    const isApart =
      isLimited ||
      (groupClause ?? havingClause ?? distinctClause) !== undefined ||
      values.some((value) => aggregates(value) || hasWindow(value))
    const joins = Math.max(0, joined - 1) * partitions * JOINED
    const more = joins - sumOf(all, (each) => each.joins)
    // PostgreSQL plans such a query once more for each min and max, before it chooses.
    const nodes = before + limits + (own + more) * (1 + endsOf(query))
    const tables = isLimited ? 1 : together(items)
    if (isApart) return { ...ONE, tables, nodes }
    return { tables, outputs: only?.outputs ?? 1, nodes, joined, partitions, joins }
  }

  #cte(cte: Struct<'CommonTableExpr'> | undefined): number {
    const body = cte?.ctequery?.SelectStmt
    const name = cte?.ctename ?? ''
    if (!body) return 0
    const { ctematerialized: kind } = cte
    const planned = this.#select(body)
    const isInlined = kind === 'CTEMaterializeNever' || (kind !== 'CTEMaterializeAlways' && this.#uses.get(name) === 1)
    this.#ctes.set(name, { planned, isInlined, isRead: false })
    return planned.nodes
  }

  #item(item: Node): Planned {
    const { JoinExpr: join, RangeSubselect: sub, RangeVar: table, RangeTableSample: sample } = item
    if (join) return this.#join(join)
    if (sub?.subquery?.SelectStmt) return this.#named(sub.alias, this.#select(sub.subquery.SelectStmt))
    const from = table ?? sample?.relation?.RangeVar
    const within = table ? 0 : this.#within(item)
    if (!from) return this.#named((item.RangeFunction ?? item.JsonTable)?.alias, { ...ONE, nodes: within })
    const planned = from.schemaname === undefined ? this.#reference(from.relname ?? '') : this.#table(from)
    return this.#named(from.alias, { ...planned, nodes: planned.nodes + within })
  }

  #named(alias: Struct<'Alias'> | undefined, planned: Planned): Planned {
    const { aliasname, colnames = [] } = alias ?? {}
    if (aliasname !== undefined) {
      this.#reach.set(aliasname, planned)
      this.#columns.set(aliasname, colnames.length)
    }
    return planned
  }

  #join({ larg, rarg, quals, usingClause = [], alias, join_using_alias }: Struct<'JoinExpr'>): Planned {
    const sides = [larg, rarg].flatMap((side) => (side ? [this.#item(side)] : []))
    const tables = together(sides)
    const both = {
      ...{ tables, outputs: 1, nodes: 0 },
      joined: sumOf(sides, (side) => side.joined),
      partitions: sumOf(sides, (side) => side.partitions),
      joins: sumOf(sides, (side) => side.joins),
    }
    this.#named(join_using_alias, both)
    const conditions = sumOf(partsOf(quals), (part) => this.#condition(part, undefined))
    const nodes = sumOf(sides, (side) => side.nodes) + usingClause.length * 3 * tables + conditions
    return this.#named(alias, { ...both, nodes })
  }

  #table({ schemaname, relname = '', inh }: Struct<'RangeVar'>): Planned {
    const tables = inh ? (this.#exposed.table(schemaname, relname)?.tables ?? 1) : 1
    if (tables > this.largest.tables) this.largest = { name: relname, tables }
    const isMany = tables > 1
    return {
      ...ONE,
      tables,
      outputs: tables,
      nodes: tables * OWN,
      joined: isMany ? 1 : 0,
      partitions: isMany ? tables : 0,
    }
  }

  /** Returns a reference to WITH, which may be a copy of it. */
  #reference(name: string): Planned {
    const cte = this.#ctes.get(name)
    if (!cte?.isInlined) return { ...ONE, nodes: OWN }
    const { planned, isRead } = cte
    cte.isRead = true
    return { ...planned, nodes: isRead ? planned.nodes : 0 }
  }

  /** Returns the nodes of a part of AND, for each of the tables that it names. */
  #condition(part: Node, only: Reach | undefined): number {
    const tables = only?.tables ?? together([...references(part)].flatMap((alias) => this.#reach.get(alias) ?? []))
    const nodes = this.#nodes(part) * tables
    if (hasListParam(part)) this.#noteLists(part, tables)
    if (tables > 1 && !semiJoin(part)) this.#unhash(part, tables)
    return nodes + this.#within(part)
  }

  /** Returns the nodes of outputs that PostgreSQL computes for each partition: those without aggregates. */
  #outputs(values: readonly Node[], only: Reach | undefined): number {
    const outputs = only?.outputs ?? 1
    return sumOf(values, (value) => {
      if (aggregates(value) || hasWindow(value)) return 0
      const nodes = this.#nodes(value) * outputs
      if (outputs > 1) this.#unhash(value, outputs)
      return nodes
    })
  }

  /** Returns the sub-query of a part of AND that PostgreSQL joins with FROM. */
  #semiJoined(part: Node): readonly Planned[] {
    const query = semiJoin(part)?.subselect?.SelectStmt
    return query ? [this.#select(query)] : []
  }

  /**
   * Adds OFFSET 0 to EXISTS in a value, so that PostgreSQL cannot keep the rows in a hash table. Each partition would get
   * one of its own: 50,000 rows took 1.4 GB over 365 partitions. A sub-query of one small table stays as it is.
   */
  #unhash(value: unknown, tables: number): void {
    if (!isNode(value) || value.SelectStmt) return
    const { SubLink: link } = value
    const exists = link?.subLinkType === 'EXISTS_SUBLINK' ? link.subselect?.SelectStmt : undefined
    if (exists && !exists.larg && !exists.limitOffset) {
      this.#hashed += this.#rowsOf(exists) * tables
      const limit = { limitOffset: { A_Const: { ival: {} } }, limitOption: 'LIMIT_OPTION_COUNT' }
      if (this.#hashed > HASHED_MAX) Object.assign(exists, limit)
    }
    for (const part of Object.values(value)) this.#unhash(part, tables)
  }

  /** Returns the rows of a query of one stored table, otherwise Infinity. */
  #rowsOf({ fromClause = [] }: SelectStmt): number {
    const [only, second] = fromClause
    if (second) return Infinity
    const table = only?.RangeSubselect?.subquery?.SelectStmt?.fromClause?.[0]?.RangeVar
    const rows = table?.schemaname === undefined ? -1 : this.#exposed.table(table.schemaname, table.relname ?? '')?.rows
    return rows === undefined || rows < 0 ? Infinity : rows
  }

  #noteLists(value: unknown, tables: number): void {
    if (!isNode(value)) return
    const array = listParam(value)
    if (array) {
      const isDirect = array.ParamRef !== undefined
      for (const number of paramsIn(array)) this.lists.push({ number, tables, isDirect })
    }
    for (const part of Object.values(value)) this.#noteLists(part, tables)
  }

  /** Returns the nodes of the queries inside a value. */
  #within(value: unknown): number {
    if (!isNode(value)) return 0
    if (value.SelectStmt) return this.#select(value.SelectStmt).nodes
    const known = this.#inside.get(value)
    if (known !== undefined) return known
    const parts = madeBehind(value) ?? Object.values(value)
    const sum = parts.reduce((all: number, part: unknown) => all + this.#within(part), 0)
    this.#inside.set(value, sum)
    return sum
  }

  /** Returns the nodes of an expression without the queries inside. */
  #nodes(value: unknown): number {
    if (!isNode(value)) return 0
    const known = this.#own.get(value)
    if (known !== undefined) return known
    const nodes = this.#counted(value)
    this.#own.set(value, nodes)
    return nodes
  }

  #counted(value: Node): number {
    if (value.SubLink) return SUB_QUERY + this.#nodes(value.SubLink.testexpr)
    const [row, column] = words(value.ColumnRef?.fields)
    if (row !== undefined) {
      const made = madeBehind(value) ?? []
      if (column === undefined) return 1 + (this.#columns.get(row) ?? 0) + this.#nodes(made)
      // Each arm of UNION has one of the expressions.
      return 1 + Math.max(0, ...made.map((each) => this.#nodes(each)))
    }
    const expr = value.A_Expr
    if (expr?.lexpr && expr.rexpr) return 1 + this.#sides(expr, expr.lexpr, expr.rexpr)
    const nodes = Object.entries(value).reduce((sum, [key, part]: [string, unknown]) => {
      // The tag of a node is a key that starts with a capital letter.
      return sum + (key < 'a' && key >= 'A' && key !== 'String' ? 1 : 0) + this.#nodes(part)
    }, 0)
    return value.BoolExpr?.boolop === 'OR_EXPR' ? nodes * IN_OR : nodes
  }

  #sides(expr: Struct<'A_Expr'>, lexpr: Node, rexpr: Node): number {
    const { left, right } = copiedSides(expr)
    const lefts = (1 + left) * this.#nodes(lexpr)
    if (expr.kind === 'AEXPR_OP_ANY' || expr.kind === 'AEXPR_OP_ALL') {
      return lefts + (varies(rexpr) ? this.#nodes(rexpr) : elementsOf(rexpr) * ELEMENT)
    }
    const constants = rexpr.List?.items?.filter(isConstant).length ?? 0
    const nodes = lefts + (1 + right) * this.#nodes(rexpr) - constants * ELEMENT
    return expr.kind === 'AEXPR_IN' && left > 0 ? nodes * IN_OR : nodes
  }
}

function sumOf<Of>(items: readonly Of[], each: (item: Of) => number): number {
  return items.reduce((sum, item) => sum + each(item), 0)
}

/** Adds up the tables of several parts of FROM. Only partitioned ones count. */
function together(parts: readonly Reach[]): number {
  return Math.max(
    1,
    parts.reduce((sum, { tables }) => sum + (tables > 1 ? tables : 0), 0),
  )
}

const hasListParam = remembered((part) =>
  isNode(part) && listParam(part) ? true : 'SubLink' in part ? false : undefined,
)

/** Returns the list of `x = ANY (list)` if a parameter gives it. */
function listParam({ A_Expr: expr }: Node): Node | undefined {
  const isList = expr?.kind === 'AEXPR_OP_ANY' || expr?.kind === 'AEXPR_OP_ALL'
  if (!isList || !expr.rexpr || !hasParam(expr.rexpr) || varies(expr.rexpr)) return undefined
  return withoutCasts(expr.rexpr)
}

function withoutCasts(node: Node): Node {
  return node.TypeCast?.arg ? withoutCasts(node.TypeCast.arg) : node
}

function paramsIn(value: unknown): readonly number[] {
  if (!isNode(value)) return []
  const own = value.ParamRef?.number
  return [...(own === undefined ? [] : [own]), ...Object.values(value).flatMap(paramsIn)]
}

/** Returns the largest number of elements of a list that the planner computes, without parameters. */
function elementsOf(list: Node): number {
  const array = withoutCasts(list)
  if (hasParam(array)) return 0
  const text = literalText(array)
  return text === undefined ? Math.min(piecesOf(array), UNKNOWN_ELEMENTS) : text.split(',').length
}

/** Returns the parts of AND. */
function partsOf(condition: Node | undefined): readonly Node[] {
  const { boolop, args = [] } = condition?.BoolExpr ?? {}
  return boolop === 'AND_EXPR' ? args.flatMap(partsOf) : condition ? [condition] : []
}

/** Returns the sub-query of a part of AND that is IN, EXISTS or NOT EXISTS by itself. */
function semiJoin({ SubLink: link, BoolExpr: not }: Node): Struct<'SubLink'> | undefined {
  const inner = not?.boolop === 'NOT_EXPR' ? not.args?.[0]?.SubLink : undefined
  if (inner?.subLinkType === 'EXISTS_SUBLINK') return inner
  return link && /^(?:EXISTS|ANY)_SUBLINK$/.test(link.subLinkType ?? '') ? link : undefined
}
