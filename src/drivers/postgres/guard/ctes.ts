// WITH: who sees which common table expression, what columns it has, and what it weighs. Each gets a name of ours, so
// that a wrong guess about scope ends in "does not exist" and never in another table.
import { constant } from './constants.ts'
import { word, words, type Node, type Struct } from './nodes.ts'
import { Refusal, refusedLimit, refusedStatement } from './refusal.ts'
import {
  distinctNames,
  newAlias,
  type Cte,
  type CteColumn,
  type CteScope,
  type Field,
  type Level,
  type Walk,
} from './scope.ts'
import { select } from './select.ts'

/** Common table expressions in one statement; the largest of 2,033 real queries has 15. */
const CTES_MAX = 100

interface Walked {
  readonly node: Struct<'WithClause'>
  readonly scope: CteScope
}

/** A WITH clause, confined, and what it adds to the names that FROM may mean. Throws Refusal. */
export function walkWith(
  walk: Walk,
  clause: Struct<'WithClause'>,
  parent: Level | null,
  outer: CteScope | null,
): Walked {
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
  // Without RECURSIVE one sees only those written before it; its own name still means a table.
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
  return new Refusal('table', name, `table ${name} is given more than once in WITH`, 'Give each its own name.', at)
}

interface Where {
  readonly parent: Level | null
  readonly scope: CteScope
  readonly isRecursive: boolean
}

/** One common table expression; walked when first needed, since RECURSIVE lets a name be used before it is written. */
class Body implements Cte {
  readonly name: string
  readonly alias: string
  readonly weight = { items: 0, ctes: new Map<Cte, number>() }
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

  /** Its columns; inside itself, those of its first arm. Throws Refusal. */
  columns(): readonly CteColumn[] {
    if (this.#state === 'waiting') this.#walkBody()
    if (this.#state === 'walking') this.#refersToItself = true
    if (!this.#columns) {
      const why = `table ${this.name} refers to itself where it may not`
      const hint = 'In WITH RECURSIVE only the second arm of UNION may name the expression itself.'
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
      if (isRecursive) this.#columns = this.#named(outputs)
    }
    const { node, outputs } = select(this.#walk, query, parent, scope, onLeft)
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

  #named(outputs: readonly Field[]): readonly Field[] {
    const given = words(this.#raw.aliascolnames)
    if (given.length > outputs.length) {
      const why = `table ${this.name} has ${outputs.length} columns, ${given.length} are named`
      throw new Refusal('table', this.name, why, 'Name as many columns as the query has.', this.#raw.location)
    }
    return outputs.map(({ name, type }, index) => ({ name: given[index] ?? name, type }))
  }

  #materialized(): string {
    const { ctematerialized = 'CTEMaterializeDefault' } = this.#raw
    if (!/^CTEMaterialize(Default|Always|Never)$/.test(ctematerialized)) throw refusedStatement('MATERIALIZED')
    return ctematerialized
  }

  /** Columns that SEARCH and CYCLE add behind its own. */
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

/** TO and DEFAULT of CYCLE: the grammar takes a literal. Throws Refusal for anything else. */
function mark(node: Node | undefined, at: number | undefined): Node {
  if (!node?.A_Const) throw refusedStatement('CYCLE … TO what is no plain literal', at)
  return constant(node.A_Const)
}
