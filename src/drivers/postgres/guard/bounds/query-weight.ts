// Counts the FROM items and the sorts of a query. PostgreSQL copies (inlines) some WITH queries to each place that
// reads them, so their items and sorts count once for each place. It does not check a timeout while it copies: thirty
// doublings took 15 GB, and only SIGKILL ended them.
import { refusedLimit, type Refusal } from '../refusal.ts'
import { checkSorts, type Cte, type Weight } from '../walk/scope.ts'

const WEIGHT_MAX = 1_000
/**
 * The limit on tables in one join tree. The planner derives conditions from each pair of equal columns: for 300 tables
 * that are joined by the same key, PostgreSQL 15 took 2.5 GB before it checked the timeout.
 */
const JOINED_MAX = 100

/** Counts one more FROM item. Throws Refusal if one body has too many items. */
export function addItem(weight: Weight): void {
  weight.items += 1
  weight.joined += 1
  if (weight.items > WEIGHT_MAX) throw tooHeavy()
}

/** Takes back an item that addItem() counted, because the tables in it are counted instead. */
export function dropItem(weight: Weight): void {
  weight.items -= 1
  weight.joined -= 1
}

/** Throws Refusal if the weight of the query exceeds the limit. */
export function checkWeight(weight: Weight): void {
  const known = new Map<Cte, number>()
  if (weigh(weight, known) > WEIGHT_MAX) throw tooHeavy()
  checkSorts(weigh(weight, new Map(), 'sorts'))
  const joined = joinedIn(weight, new Map())
  if (joined <= JOINED_MAX) return
  const why = `the query joins ${joined} tables, counting each WITH where it is used; the limit is ${JOINED_MAX}`
  throw refusedLimit('JOIN', why)
}

/** Returns the largest number of tables that the planner may join at once. It plans each arm of a UNION separately. */
function joinedIn(weight: Weight, known: Map<Cte, number>): number {
  let total = weight.joined
  for (const [cte, references] of weight.ctes) {
    const isInlined = !cte.isRecursive() && cte.materialized !== 'CTEMaterializeAlways'
    total += references * (isInlined && isCopied(cte) ? joinedOf(cte, known) : 1)
  }
  return total
}

function joinedOf(cte: Cte, known: Map<Cte, number>): number {
  const before = known.get(cte)
  if (before !== undefined) return before
  known.set(cte, 1)
  const total = joinedIn(cte.weight, known)
  if (total > JOINED_MAX) throw refusedLimit('JOIN', `a WITH query joins ${total} tables; the limit is ${JOINED_MAX}`)
  known.set(cte, total)
  return total
}

/** Returns whether PostgreSQL copies a WITH query to where it is read, unless it is recursive or MATERIALIZED. */
function isCopied({ materialized, references }: Cte): boolean {
  return materialized === 'CTEMaterializeNever' || references === 1
}

function tooHeavy(): Refusal {
  const why = `the query reads more than ${WEIGHT_MAX} tables, counting each WITH where it is used`
  return refusedLimit('WITH', why)
}

function weigh(weight: Weight, known: Map<Cte, number>, what: 'items' | 'sorts' = 'items'): number {
  let total = weight[what]
  for (const [cte, references] of weight.ctes) total += references * weightOf(cte, known, what)
  return total
}

/**
 * Returns the weight of one reference. A WITH query that is not copied is planned once, so its references share its
 * weight, and each counts as one more item.
 */
function weightOf(cte: Cte, known: Map<Cte, number>, what: 'items' | 'sorts'): number {
  const total = own(cte, known, what)
  const isInlined = !cte.isRecursive() && cte.materialized !== 'CTEMaterializeAlways' && isCopied(cte)
  return isInlined ? total : (what === 'items' ? 1 : 0) + total / Math.max(cte.references, 1)
}

function own(cte: Cte, known: Map<Cte, number>, what: 'items' | 'sorts'): number {
  const before = known.get(cte)
  if (before !== undefined) return before
  // A recursive query refers to itself. That inner reference counts as one.
  known.set(cte, 1)
  const total = weigh(cte.weight, known, what)
  known.set(cte, total)
  return total
}
