// If a WITH query collects rows, the guard prints it as a sub-select at the place that reads it. PostgreSQL does the
// same with a WITH query that is read once, and then moves conditions into it. But it keeps one that calls a volatile
// function (SS_process_ctes() in subselect.c), such as the counter of collected-rows.ts. It would then collect the
// whole table before a condition applies.
import { isNode, type Node, type SelectStmt, type Struct } from '../allowed/allowed-nodes.ts'
import { isUnsteady } from './argument-bounds.ts'
import { hasCounter } from './collected-rows.ts'
import { aggregates } from './unhashed.ts'

/** Inlines each WITH query that collects, and that PostgreSQL would inline if it had no counter. */
export function inlineCollecting(query: SelectStmt): void {
  const all = new Queries()
  all.visit(query, [])
  all.inline()
}

/** A WITH query. `reads` are the places that read it. `inner` are the places in its body that read another one. */
class Query {
  readonly cte: Struct<'CommonTableExpr'>
  readonly body: SelectStmt
  readonly reads: Place[] = []
  readonly inner: Place[] = []
  #isMovable: boolean | undefined
  #isMoved: boolean | undefined

  constructor(cte: Struct<'CommonTableExpr'>, body: SelectStmt) {
    this.cte = cte
    this.body = body
  }

  /** Returns whether PostgreSQL would inline the query if it had no counter, and could then move conditions into it. */
  isMovable(): boolean {
    if (this.#isMovable !== undefined) return this.#isMovable
    this.#isMovable = false
    const [place, second] = this.reads
    if (!place || second || this.isKept() || place.inside.includes(this)) return false
    // Do not move the query into a WITH query that PostgreSQL would inline itself or compute several times.
    this.#isMovable = place.inside.every((outer) => outer.isMovable() || (outer.isKept() && !outer.isRecursive()))
    return this.#isMovable
  }

  /** Returns whether PostgreSQL keeps the query as a WITH, or could move no condition into it. */
  isKept(): boolean {
    const { ctematerialized } = this.cte
    if (ctematerialized === 'CTEMaterializeAlways' || this.isRecursive()) return true
    if (ctematerialized !== 'CTEMaterializeNever' && this.reads.length !== 1) return true
    return !takesConditions(this.body) || isUnsteady(this.body)
  }

  isRecursive(): boolean {
    return this.inner.some(({ of }) => of === this)
  }

  /** Returns whether the query is inlined: it collects, or a query that is inlined into it does. */
  isMoved(): boolean {
    this.#isMoved ??= this.isMovable() && (hasCounter(this.body) || this.inner.some(({ of }) => of?.isMoved()))
    return this.#isMoved
  }
}

/** A FROM item that may read a WITH query, and the WITH queries that contain the item. */
interface Place {
  readonly read: Node
  readonly inside: readonly Query[]
  of: Query | undefined
}

class Queries {
  readonly #named = new Map<string, Query>()
  readonly #places: Place[] = []
  readonly #holders: SelectStmt[] = []

  /** Visits what is printed. A part that is printed twice reads a WITH query twice. */
  visit(value: unknown, inside: readonly Query[]): void {
    if (!isNode(value)) return
    const { CommonTableExpr: cte, RangeVar: table } = value
    const body = cte?.ctequery?.SelectStmt
    if (hasWith(value)) this.#holders.push(value)
    if (table && table.schemaname === undefined) this.#places.push({ read: value, inside, of: undefined })
    const query = cte && body && new Query(cte, body)
    if (query) this.#named.set(cte.ctename ?? '', query)
    for (const part of Object.values(value)) this.visit(part, query ? [...inside, query] : inside)
  }

  inline(): void {
    for (const place of this.#places) {
      place.of = this.#named.get(place.read.RangeVar?.relname ?? '')
      place.of?.reads.push(place)
      for (const query of place.inside) query.inner.push(place)
    }
    const moved = [...this.#named.values()].filter((query) => query.isMoved())
    for (const { reads, body } of moved) {
      const [place] = reads
      if (!place) continue
      const { alias } = place.read.RangeVar ?? {}
      Reflect.deleteProperty(place.read, 'RangeVar')
      Object.assign(place.read, { RangeSubselect: { subquery: { SelectStmt: body }, ...(alias && { alias }) } })
    }
    const bodies = new Set(moved.map(({ cte }) => cte))
    for (const holder of this.#holders) {
      const { withClause } = holder
      const ctes = withClause?.ctes?.filter(({ CommonTableExpr: cte }) => !cte || !bodies.has(cte)) ?? []
      if (ctes.length === 0) Reflect.deleteProperty(holder, 'withClause')
      else Object.assign(holder, { withClause: { ...withClause, ctes } })
    }
  }
}

function hasWith(part: object): part is SelectStmt {
  return 'withClause' in part
}

/** Returns whether PostgreSQL can move a condition into the query: not with LIMIT, nor into a total of all rows. */
function takesConditions({ larg, fromClause, limitCount, limitOffset, ...parts }: SelectStmt): boolean {
  if (limitCount ?? limitOffset) return false
  if (larg) return true
  const isTotal = !parts.groupClause && (parts.havingClause !== undefined || (parts.targetList ?? []).some(aggregates))
  return fromClause !== undefined && fromClause.length > 0 && !isTotal
}
