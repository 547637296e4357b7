// Prints NULL in place of outputs of a sub-select in FROM that nothing reads. PostgreSQL itself does not compute such
// outputs (remove_unused_subquery_outputs() in allpaths.c), unless they call a volatile function. The counter of
// collected-rows.ts is one, so an output that collects would be computed for each row.
import { isNode, words, type Node, type SelectStmt, type Struct } from '../allowed/allowed-nodes.ts'
import type { Walk } from '../walk/scope.ts'
import { givesRows, hasParam } from './argument-bounds.ts'
import { isAggregate, isCounter, outerOf } from './collected-rows.ts'
import { remembered } from './printed-size.ts'
import { aggregates } from './unhashed.ts'

/** Prints NULL in place of unread outputs if one of them collects. A WITH that stays a WITH keeps its outputs. */
export function leaveOutUnread(walk: Walk, query: SelectStmt): void {
  const outputs = new Outputs(walk)
  outputs.visit(query)
  const unread = outputs.unread()
  if (!unread.some(collects)) return
  for (const target of unread) {
    // An expression that reads a NULL may not fit its type. A plain column always does.
    if (!target.val?.ColumnRef) Object.assign(target, { val: { A_Const: { isnull: true } } })
  }
}

/** Like hasCounter(), which must not be asked again after a WITH was moved. */
const collects = remembered(isCounter)

type Target = Struct<'ResTarget'>

/** What is known of one alias. */
interface Item {
  /** True if a place reads all columns: the whole row. */
  isWhole: boolean
  readonly read: Set<string>
  /** The outputs that no place has read so far, by the names of their columns. */
  readonly unread: Map<string, Target[]>
}

/** Visits what is read: an output only when a place that is read reads it. */
class Outputs {
  readonly #walk: Walk
  readonly #items = new Map<string, Item>()
  /** The names in USING. */
  readonly #merged = new Set<string>()

  constructor(walk: Walk) {
    this.#walk = walk
  }

  unread(): readonly Target[] {
    return [...this.#items.values()].flatMap(({ unread }) => [...unread.values()].flat())
  }

  visit(value: unknown): void {
    if (!isNode(value)) return
    const { ColumnRef: ref, JoinExpr: join, RangeSubselect: item } = value
    if (ref) this.#read(ref)
    if (join) this.#join(join)
    const query = item?.subquery?.SelectStmt
    if (item && query && !(query.larg ?? query.valuesLists ?? query.distinctClause)) this.#define(item, query)
    else for (const part of Object.values(value)) this.visit(part)
  }

  #define({ alias }: Struct<'RangeSubselect'>, query: SelectStmt): void {
    const { targetList = [], ...rest } = query
    this.visit(rest)
    const item = this.#item(alias?.aliasname ?? '')
    const numbers = numbersIn([query.sortClause, query.groupClause])
    for (const [at, { ResTarget: target }] of targetList.entries()) {
      const name = alias?.colnames?.[at]?.String?.sval ?? ''
      const isRead = item.isWhole || item.read.has(name) || this.#merged.has(name) || numbers.has(at + 1)
      if (isRead || !target?.val || !this.#isFree(query, target.val)) this.visit(target)
      else item.unread.set(name, [...(item.unread.get(name) ?? []), target])
    }
  }

  /**
   * Returns whether all other outputs, and the rows, stay the same without the value. An aggregate belongs to the
   * innermost query whose columns it reads, and makes it a total if it has no groups.
   */
  #isFree(query: SelectStmt, value: Node): boolean {
    // A parameter that is left out would have no type.
    if (hasParam(value) || givesRows(value)) return false
    const isGrouped = (query.groupClause ?? query.havingClause) !== undefined
    if (!isGrouped && aggregates(value)) return false
    const around = outerOf(this.#walk, isGrouped ? query : value)
    return aggregatesIn(value).every((call) => {
      const read = outerOf(this.#walk, call)
      return read.size === 0 || !read.isSubsetOf(around)
    })
  }

  #read({ fields }: Struct<'ColumnRef'>): void {
    const [alias = '', column] = words(fields)
    const item = this.#item(alias)
    const found = column === undefined ? [...item.unread.values()].flat() : (item.unread.get(column) ?? [])
    if (column === undefined) {
      item.isWhole = true
      item.unread.clear()
    } else {
      item.read.add(column)
      item.unread.delete(column)
    }
    this.visit(found)
  }

  /** USING reads columns by name. An alias of a join names the columns of both sides by position. */
  #join({ larg, rarg, usingClause, alias }: Struct<'JoinExpr'>): void {
    for (const name of words(usingClause)) this.#merged.add(name)
    if (alias) this.#wholes([larg, rarg])
  }

  #wholes(sides: readonly (Node | undefined)[]): void {
    for (const { JoinExpr: join, RangeSubselect: item } of sides.filter((side) => side !== undefined)) {
      if (join) this.#wholes([join.larg, join.rarg])
      if (item) this.#item(item.alias?.aliasname ?? '').isWhole = true
    }
  }

  #item(alias: string): Item {
    const known = this.#items.get(alias)
    if (known) return known
    const item = { isWhole: false, read: new Set<string>(), unread: new Map<string, Target[]>() }
    this.#items.set(alias, item)
    return item
  }
}

/** Returns the whole numbers in ORDER BY and GROUP BY, which may be positions of outputs. */
function numbersIn(value: unknown, found = new Set<number>()): ReadonlySet<number> {
  if (!isNode(value)) return found
  const number = value.A_Const?.ival?.ival
  if (number !== undefined) found.add(number)
  for (const part of Object.values(value)) numbersIn(part, found)
  return found
}

/** Returns all aggregates in a value, also in its sub-queries. */
function aggregatesIn(value: unknown, found: Node[] = []): readonly Node[] {
  if (!isNode(value)) return found
  const { FuncCall: call, JsonArrayAgg, JsonObjectAgg } = value
  if ((call && isAggregate(call)) ?? JsonArrayAgg ?? JsonObjectAgg) found.push(value)
  for (const part of Object.values(value)) aggregatesIn(part, found)
  return found
}
