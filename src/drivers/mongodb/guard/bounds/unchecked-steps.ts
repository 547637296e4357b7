// Some stages sort all documents and then compute values for all of them in one loop, which no timeout ends. This file
// bounds the steps that mongod takes there before it checks for a cancel again.
import { constant, HUGE, plus, sizesOf, type Amount } from './amount.ts'
import { worstOf } from './measured-work.ts'
import { refusedLimit } from '../refusals/refusal.ts'
import { DOCUMENT, measureOf } from './value-size.ts'

/** The limit for one document. The 100 MB of the sort have room for 600,000 documents, which take at most 3 s. */
const UNCHECKED_STEPS = 100
/** The bytes of a small document. The sort has room for fewer documents if they are larger. */
const DOCUMENT_KEPT = 170

/**
 * Returns the steps for a document of DOCUMENT_KEPT bytes. A larger document may take more steps, in proportion to its
 * size.
 */
function uncheckedSteps(amount: Amount): number {
  const isLinear = [...amount.terms.values()].every(({ sizes }) => sizes.length === 1)
  const isInside = sizesOf(amount).every((size) => measureOf(size).place.split('.', 1)[0] === DOCUMENT)
  return isLinear && isInside ? Math.max(amount.constant, worstOf(amount, DOCUMENT_KEPT)) : HUGE
}

/** For an output that makes a set of values whose hashes the query can choose. Its steps have no bound. */
export const UNBOUNDED: Amount = constant(HUGE)

/**
 * Checks outputs of `of` that read all documents of a partition before the first result. While the first output reads
 * the documents, mongod checks for a cancel. The other outputs read the same documents again from memory. Any output
 * may come first, so the cheapest is assumed to be first.
 */
export function checkReadAgain(of: string, outputs: readonly Amount[]): void {
  const [, ...others] = outputs.toSorted((one, other) => uncheckedSteps(one) - uncheckedSteps(other))
  if (others.length === 0) return
  checkUnchecked(
    `the outputs of ${of} that read the whole partition`,
    plus(...others),
    others.includes(UNBOUNDED)
      ? `Put the set of computed values into a separate ${of}.`
      : `Compute the values in a $set before ${of}, or put one of these outputs into a separate ${of}.`,
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
