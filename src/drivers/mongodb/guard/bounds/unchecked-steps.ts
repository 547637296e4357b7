// Bounds the steps that mongod takes between a sort and the next check for a cancel. Some stages sort all documents, and
// then compute values for all of them in one loop. No timeout ends this loop.
import { constant, HUGE, plus, sizesOf, type Amount } from './amount.ts'
import { worstOf } from './measured-work.ts'
import { refusedLimit } from '../refusals/refusal.ts'
import { DOCUMENT, measureOf } from './value-size.ts'

/** The maximum number of such steps for one document. The 100 MB of the sort hold 600,000 documents, which take 3 s at most. */
const UNCHECKED_STEPS = 100
/** The memory of a small document in the sort, in bytes. The sort holds fewer of the larger documents. */
const DOCUMENT_KEPT = 170

/** Returns the steps for a document of DOCUMENT_KEPT bytes. A larger document may take more, in the same proportion. */
function uncheckedSteps(amount: Amount): number {
  const isLinear = [...amount.terms.values()].every(({ sizes }) => sizes.length === 1)
  const isInside = sizesOf(amount).every((size) => measureOf(size).place.split('.', 1)[0] === DOCUMENT)
  return isLinear && isInside ? Math.max(amount.constant, worstOf(amount, DOCUMENT_KEPT)) : HUGE
}

/** The steps of an output that makes a set of values whose hashes the query can choose. They have no bound. */
export const UNBOUNDED: Amount = constant(HUGE)

/**
 * Checks the outputs of `of` that read all documents of a partition before the first result. mongod checks for a cancel
 * while the first of them reads the documents. The others read the same documents again from memory, in any order.
 */
export function checkReadAgain(of: string, outputs: readonly Amount[]): void {
  const [, ...others] = outputs.toSorted((one, other) => uncheckedSteps(one) - uncheckedSteps(other))
  if (others.length === 0) return
  checkUnchecked(
    `the outputs of ${of} that read the whole partition`,
    plus(...others),
    others.includes(UNBOUNDED)
      ? `Put the set of computed values into a ${of} of its own.`
      : `Compute the values in a $set before ${of}, or put one of these outputs into a ${of} of its own.`,
  )
}

/** Checks the steps that `of` takes for each document without a check for a cancel. */
export function checkUnchecked(of: string, amount: Amount, hint: string): void {
  const steps = uncheckedSteps(amount)
  if (steps <= UNCHECKED_STEPS) return
  throw refusedLimit(
    'steps',
    `${of} take ${steps < HUGE ? `about ${Math.ceil(steps)}` : `more than ${UNCHECKED_STEPS}`} steps for one document, and no timeout ends this work; the limit is ${UNCHECKED_STEPS}`,
    hint,
  )
}
