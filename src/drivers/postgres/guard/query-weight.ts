// Weighs a query by the number of its FROM items. A reference to a common table expression that PostgreSQL inlines
// counts as all items of the expression. PostgreSQL inlines without checking a timeout: thirty doublings took 15 GB,
// and only SIGKILL ended them.
import { refusedLimit, type Refusal } from './refusal.ts'
import type { Cte, Weight } from './scope.ts'

const WEIGHT_MAX = 1_000

/** Counts one more FROM item. Throws Refusal if the items of one body alone are too many. */
export function addItem(weight: Weight): void {
  weight.items += 1
  if (weight.items > WEIGHT_MAX) throw tooHeavy()
}

/** Throws Refusal if the weight of the query exceeds the limit. */
export function checkWeight(weight: Weight): void {
  const known = new Map<Cte, number>()
  if (weigh(weight, known) > WEIGHT_MAX) throw tooHeavy()
}

function tooHeavy(): Refusal {
  const why = `the query reads more than ${WEIGHT_MAX} tables, counting each WITH where it is used`
  return refusedLimit('WITH', why)
}

function weigh(weight: Weight, known: Map<Cte, number>): number {
  let total = weight.items
  for (const [cte, references] of weight.ctes) total += references * weightOf(cte, known)
  return total
}

/**
 * Returns the weight of one reference. An expression that is not inlined is planned once, so its references share its
 * items.
 */
function weightOf(cte: Cte, known: Map<Cte, number>): number {
  if (cte.isRecursive()) return 1 + own(cte, known) / Math.max(cte.references, 1)
  const isInlined =
    cte.materialized === 'CTEMaterializeNever' || (cte.materialized !== 'CTEMaterializeAlways' && cte.references === 1)
  return isInlined ? own(cte, known) : 1 + own(cte, known) / Math.max(cte.references, 1)
}

function own(cte: Cte, known: Map<Cte, number>): number {
  const before = known.get(cte)
  if (before !== undefined) return before
  // If the expression refers to itself, it is recursive, and the inner reference counts as one item.
  known.set(cte, 1)
  const total = weigh(cte.weight, known)
  known.set(cte, total)
  return total
}
