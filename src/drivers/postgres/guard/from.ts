// FROM: every item becomes something closed, a sub-select over an exposed table, a common table expression or a call,
// under an alias of ours with its columns named. Nothing behind them can be reached by any other name.
import { expression } from './expression.ts'
import { functionItem } from './from-functions.ts'
import { tableHint } from './hints.ts'
import { jsonTable } from './json-table.ts'
import { join } from './joins.ts'
import { readAs } from './looked-up.ts'
import { word, words, type Node, type Struct } from './nodes.ts'
import { Refusal, refusedStatement, refusedTable } from './refusal.ts'
import type { TypeName } from '../capture.ts'
import type { ExposedColumn, ExposedTable } from './exposed.ts'
import {
  columnRef,
  distinctNames,
  findCte,
  newAlias,
  newLevel,
  spend,
  type Base,
  type Column,
  type Cte,
  type CteColumn,
  type Item,
  type Level,
  type SqlType,
  type Walk,
} from './scope.ts'
import { select } from './select.ts'
import { Shown } from './shown.ts'
import { sqlType } from './type-names.ts'
import { addItem } from './weight.ts'

/** A FROM item, confined, and the names that it makes visible. */
export interface From {
  readonly node: Node
  readonly shown: Shown
}

/** The whole FROM list; what it shows is left in `level`. Throws Refusal. */
export function fromItems(walk: Walk, level: Level, nodes: readonly Node[]): Node[] {
  return nodes.map((node) => {
    const from = fromItem(walk, level, node)
    const [before] = level.shown
    if (before) {
      checkNames(before, from.shown)
      before.take(from.shown, [])
    } else level.shown = [from.shown]
    return from.node
  })
}

/** One item; what stands left of it in FROM is in `level` for LATERAL. Throws Refusal. */
export function fromItem(walk: Walk, level: Level, node: Node): From {
  if (node.JoinExpr) return join(walk, level, node.JoinExpr)
  if (node.RangeVar) return table(walk, level, node.RangeVar)
  addItem(walk.weight)
  if (node.RangeSubselect) return subselect(walk, level, node.RangeSubselect)
  if (node.RangeFunction) return functionItem(walk, level, node.RangeFunction)
  if (node.RangeTableSample) return sample(walk, level, node.RangeTableSample)
  if (node.JsonTable) return jsonTable(walk, level, node.JsonTable)
  throw refusedStatement(Object.keys(node)[0] ?? 'FROM')
}

/** Throws Refusal for the same table name on two sides, as a server would. */
export function checkNames(left: Shown, right: Shown): void {
  for (const { name, schema } of right.items) {
    if (name === null) continue
    const others = left.tables(name, undefined)
    const clash = others.some((other) => other.schema === null || schema === null || other.schema === schema)
    if (clash) {
      const why = `table ${name} is given more than once in FROM`
      throw new Refusal('table', name, why, 'Give each its own alias.', -1)
    }
  }
}

function table(walk: Walk, level: Level, node: Struct<'RangeVar'>): From {
  addItem(walk.weight)
  const cte = node.schemaname === undefined ? findCte(level.ctes, node.relname ?? '') : undefined
  return cte ? cteItem(walk, cte, node) : tableItem(walk, node)
}

function cteItem(walk: Walk, cte: Cte, node: Struct<'RangeVar'>): From {
  walk.weight.items -= 1
  walk.weight.ctes.set(cte, (walk.weight.ctes.get(cte) ?? 0) + 1)
  cte.references += 1
  // Beside its WITH, `*` shows the columns of SEARCH and CYCLE too; the server leaves them out further in.
  const isFurtherIn = walk.depth !== cte.depth
  const fields = cte.columns().map((field) => ({ ...field, notInStar: isFurtherIn && field.added === true }))
  const made = namedItem(walk, { name: node.alias?.aliasname ?? cte.name, alias: node.alias, fields })
  const from: Node = { RangeVar: { relname: cte.alias, inh: true, relpersistence: 'p', alias: made.alias } }
  return { node: from, shown: Shown.of(made.item) }
}

function subselect(walk: Walk, level: Level, node: Struct<'RangeSubselect'>): From {
  const query = node.subquery?.SelectStmt
  if (!query) throw refusedStatement('a sub-query that is no SELECT')
  walk.weight.items -= 1
  const { lateral } = node
  const inner = select(walk, query, lateral ? level : level.parent, level.ctes)
  const made = namedItem(walk, { name: node.alias?.aliasname ?? null, alias: node.alias, fields: inner.outputs })
  const subquery: Node = { SelectStmt: inner.node }
  return {
    node: { RangeSubselect: { ...(lateral && { lateral }), subquery, alias: made.alias } },
    shown: Shown.of(made.item),
  }
}

interface Named {
  readonly name: string | null
  readonly alias: Struct<'Alias'> | undefined
  readonly fields: readonly (CteColumn & { readonly notInStar?: boolean })[]
}

/** An item under an alias of ours, its columns named as the caller sees them. Throws Refusal. */
export function namedItem(walk: Walk, { name, alias, fields }: Named): { alias: Struct<'Alias'>; item: Item } {
  const aliasname = newAlias(walk, 't', name ?? 'a part of FROM')
  // Each reference to a WITH query lists its columns anew.
  spend(walk, fields.length / 2)
  const own = fields.filter((field) => field.added !== true)
  const names = renamed(name, own, alias)
  const printed = distinctNames(names)
  const columns = fields.map((field, index): Column => {
    const called = printed[index] ?? field.name
    return { ...field, name: names[index] ?? field.name, origin: null, read: () => columnRef(aliasname, called) }
  })
  const item: Item = { name, schema: null, columns, whole: () => rowOf(aliasname, columns), base: null }
  const colnames = printed.map(word)
  return {
    alias: { aliasname, ...(colnames.length > 0 && { colnames }) },
    item,
  }
}

/** Names of columns after an alias list like t(a, b), which renames from the left. Throws Refusal. */
export function renamed(name: string | null, fields: readonly { name: string }[], alias?: Struct<'Alias'>): string[] {
  const given = words(alias?.colnames)
  if (given.length > fields.length) {
    const why = `table ${name ?? ''} has ${fields.length} columns that are shown, ${given.length} are named`
    throw new Refusal('table', name ?? '', why, 'Name as many columns as it shows.', -1)
  }
  return fields.map((field, index) => given[index] ?? field.name)
}

/** A FROM item as a row. */
export function rowOf(aliasname: string, columns: readonly Column[]): ReturnType<Item['whole']> {
  return {
    node: columnRef(aliasname),
    type: { kind: 'row', columns: columns.map(({ name, type }) => ({ name, type })) },
  }
}

/** A table's row under its own names, which t(a, b) does not change: (SELECT r FROM (SELECT t1.a, t1.b) AS r(id, name)). */
function rowUnder(walk: Walk, own: readonly { readonly name: string }[], columns: readonly Column[]): Node {
  const aliasname = newAlias(walk, 't', 'a row')
  const targetList = columns.map((column): Node => ({ ResTarget: { val: column.read() } }))
  const inner = { targetList, limitOption: 'LIMIT_OPTION_DEFAULT', op: 'SETOP_NONE' }
  const alias = { aliasname, colnames: own.map(({ name }) => word(name)) }
  const outer = {
    targetList: [{ ResTarget: { val: columnRef(aliasname) } }],
    fromClause: [{ RangeSubselect: { subquery: { SelectStmt: inner }, alias } }],
    limitOption: 'LIMIT_OPTION_DEFAULT',
    op: 'SETOP_NONE',
  }
  return { SubLink: { subLinkType: 'EXPR_SUBLINK', subselect: { SelectStmt: outer } } }
}

/** What stands inside the sub-select around a table: its own alias, and TABLESAMPLE. */
type Inside = (table: Node) => Node

function tableItem(walk: Walk, node: Struct<'RangeVar'>, inside: Inside = (plain) => plain): From {
  const found = findTable(walk, node)
  const base: Base = { table: found, used: new Set() }
  const name = node.alias?.aliasname ?? found.name
  const aliasname = newAlias(walk, 't', name)
  const names = renamed(name, found.columns, node.alias)
  const printed = distinctNames(names)
  spend(walk, found.columns.length / 2)
  const columns = found.columns.map((column, index): Column => {
    const own = printed[index] ?? column.name
    return {
      name: names[index] ?? column.name,
      type: sqlType(walk.exposed, shownType(walk, column)),
      origin: { base, column: column.name },
      read: () => {
        base.used.add(column.name)
        return columnRef(aliasname, own)
      },
    }
  })
  const whole: Item['whole'] = () => {
    for (const column of found.columns) base.used.add(column.name)
    spend(walk, columns.length)
    const row = rowOf(aliasname, columns)
    const oids = found.columns.map((column) => column.typeOid)
    const type: SqlType = {
      kind: 'row',
      columns: found.columns.map(({ name: own }, index) => ({ name: own, type: columns[index]?.type ?? null })),
      oids,
    }
    return node.alias?.colnames ? { node: rowUnder(walk, found.columns, columns), type } : { node: row.node, type }
  }
  const item: Item = { name, schema: node.alias ? null : found.schema, columns, whole, base }
  const wrapped = wrap(walk, base, { aliasname, printed, node, inside })
  return { node: wrapped, shown: Shown.of(item) }
}

/** A column's type as the query sees it. */
function shownType(walk: Walk, column: ExposedColumn): TypeName {
  return readAs(walk.exposed, column) ?? column.type
}

/** The exposed table that a name means. Throws Refusal, in the same words for a hidden one and none. */
function findTable(walk: Walk, node: Struct<'RangeVar'>): ExposedTable {
  const { catalogname, schemaname, relname = '' } = node
  const isOurs = catalogname === undefined || catalogname === walk.exposed.capture.database
  const found = isOurs ? walk.exposed.table(schemaname, relname) : undefined
  const names = [catalogname, schemaname, relname].filter((part) => part !== undefined)
  if (!found) throw refusedTable(names.join('.'), tableHint(walk.exposed, names), node.location)
  return found
}

interface Wrapping {
  readonly aliasname: string
  readonly printed: readonly string[]
  readonly node: Struct<'RangeVar'>
  readonly inside: Inside
}

/**
 * (SELECT c FROM schema.t AS t0) AS t1(c), with the columns that the query reads: known only at the end, so filled in
 * then. Columns stand without the table's alias: t0.c, where c is gone since introspection, would be the call c(t0) with
 * the whole row (PostgreSQL manual, 8.16.5). A plain c is a column or an error. It cannot mean the row t0 either: no
 * exposed column is called like one of our aliases. It could mean a column of a query around, which is one of ours; the
 * session answers SCHEMA_STALE then (session/held.ts).
 */
function wrap(walk: Walk, base: Base, { aliasname, printed, node, inside }: Wrapping): Node {
  const targetList: Node[] = []
  const colnames: Node[] = []
  walk.bases.push({
    base,
    finish: () => {
      for (const [index, column] of base.table.columns.entries()) {
        const { name } = column
        if (!base.used.has(name)) continue
        targetList.push({ ResTarget: { val: plainly(columnRef(name), readAs(walk.exposed, column)) } })
        colnames.push(word(printed[index] ?? name))
      }
    },
  })
  const { schema, name } = base.table
  const plain: Node = {
    RangeVar: {
      schemaname: schema,
      relname: name,
      ...(node.inh && { inh: true as const }),
      relpersistence: 'p',
      alias: { aliasname: `${walk.prefix}t0` },
    },
  }
  const query = { targetList, fromClause: [inside(plain)], limitOption: 'LIMIT_OPTION_DEFAULT', op: 'SETOP_NONE' }
  return { RangeSubselect: { subquery: { SelectStmt: query }, alias: { aliasname, colnames } } }
}

/** Names of things, and domains with a CHECK, are read as something plainer, so that no literal is taken for their type. */
function plainly(arg: Node, type: TypeName | undefined): Node {
  if (type === undefined) return arg
  return { TypeCast: { arg, typeName: { names: [word(type.schema), word(type.name)], typemod: -1 } } }
}

const METHODS: ReadonlySet<string> = new Set(['bernoulli', 'system'])

function sample(walk: Walk, level: Level, node: Struct<'RangeTableSample'>): From {
  const { relation, method, args, repeatable, location } = node
  const name = words(method).at(-1) ?? ''
  const isListed = METHODS.has(name) && (method?.length === 1 || words(method)[0] === 'pg_catalog')
  if (!relation?.RangeVar || !isListed) throw refusedStatement(`TABLESAMPLE ${words(method).join('.')}`, location)
  const { relname = '', schemaname } = relation.RangeVar
  if (schemaname === undefined && findCte(level.ctes, relname)) throw refusedStatement('TABLESAMPLE of WITH', location)
  // Its arguments see only the queries around: the sub-select that holds them is not LATERAL.
  const around = newLevel(level.parent, level.ctes)
  const confined = {
    method: [word('pg_catalog'), word(name)],
    args: (args ?? []).map((arg) => expression(walk, around, arg).node),
    ...(repeatable && { repeatable: expression(walk, around, repeatable).node }),
  }
  return tableItem(walk, relation.RangeVar, (plain) => ({ RangeTableSample: { relation: plain, ...confined } }))
}
