// Reads a sort: 1 or -1 for each field, in the order of the query.
import { numberOf } from '../body/parse-ejson.ts'
import { isDocument, type Bson, type BsonDocument } from '../../confined-query.ts'
import { within } from '../refusals/error-place.ts'
import { Broken, refusedIndex, refusedLimit, refusedOperator } from '../refusals/refusal.ts'
import { componentsOf } from '../body/field-names.ts'
import { resolve, type Located, type Scope } from '../documents/scope.ts'
import { isPlace, valueAt } from '../documents/document-shape.ts'
import { NONE, plus, product, scaled } from '../bounds/amount.ts'
import { collatedKeySteps, keySteps, STEP_READS } from '../bounds/operator-steps.ts'
import { valuesFound } from '../bounds/value-size.ts'

const KEYS_MAX = 32

export interface SortSpec {
  readonly printed: BsonDocument
  /** True if every path is shown as a whole, so that the sort may run before the projection. */
  readonly hoistable: boolean
  /**
   * For each path through partly exposed objects, the names that lead through them. Before the projection, documents
   * may sort differently.
   */
  readonly cut: readonly (readonly string[])[]
}

/**
 * `scope` is null for array elements with unknown fields, whose paths are not looked up. `of` compares the key of each
 * document `times` times.
 */
export function sortSpecOf(of: string, value: BsonDocument, scope: Scope | null, times = 1): SortSpec {
  const entries = Object.entries(value)
  if (entries.length === 0) throw new Broken(`${of} needs at least one field to sort by`)
  if (entries.length > KEYS_MAX) throw refusedLimit('sort fields', `${of} sorts by more than ${KEYS_MAX} fields`)
  if (entries.length > 1 && entries.some(([name]) => isPlace(name))) {
    throw new Broken(
      `${of}: JSON does not keep the order of fields whose names are numbers, so such a field must be the only one`,
    )
  }
  const cut: (readonly string[])[] = []
  let hoistable = true
  const printed: Record<string, Bson> = {}
  for (const [name, direction] of entries) {
    if (isDocument(direction)) {
      throw refusedOperator('$meta', 'a sort takes fields only', `Sort by fields: {"field": 1} or {"field": -1}.`)
    }
    const number = numberOf(direction)
    if (number !== 1 && number !== -1) throw new Broken(`${of} takes 1 or -1 for each field`)
    if (scope === null) componentsOf(name)
    else {
      const { kind, numeric, crossed, components } = within(value, name, () => resolve(name, scope))
      countKey(of, name, { numeric, components }, scope, times)
      if (kind !== 'whole') hoistable = false
      if (crossed.length > 0) cut.push(components.slice(0, crossed.length))
    }
    printed[name] = direction
  }
  return { printed, hoistable, cut }
}

// For each element of the array, $top and similar operators build the sort key again. Each pair of elements takes 18 ns
// and 2.6 bytes, and in the worst case a copy of the element.
const PAIR_STEPS = 0.4
const PAIR_KEPT = 3

/** $top and similar operators copy the key of a document, besides comparing it. To copy an element takes 90 ns. */
const KEY_COPIES = 2

/**
 * Counts the sort of `of` by this path. To find the smallest or the largest value, mongod reads all values at the path.
 * It compares the key of each document `times` times.
 */
export function countKey(
  of: string,
  path: string,
  { numeric, components }: Pick<Located, 'numeric' | 'components'>,
  { meter, shape }: Scope,
  times = 1,
): void {
  // For each element of an array in an array, mongod reads all elements again.
  if (numeric) throw refusedIndex(of, path)
  const found = valueAt(shape, components)
  const isTop = /^\$(?:top|bottom)/.test(of)
  // A sort reads a key once and then compares bytes, and its memory limit bounds the keys. With a collation, it must
  // first compute these bytes.
  meter.step(collatedKeySteps(found, meter.collation))
  if (isTop) meter.step(scaled(keySteps(found), KEY_COPIES + times))
  if (found.isSingle) return
  const values = valuesFound(found, components)
  meter.step(plus(scaled(values, 2), scaled(found.bytes, 1 / STEP_READS)))
  if (!isTop) return
  const pairs = product(values, values)
  const copies = product(values, found.bytes)
  meter.step(plus(scaled(pairs, PAIR_STEPS), scaled(copies, 1 / STEP_READS)))
  meter.made({ ...found, bytes: NONE, kept: plus(scaled(pairs, PAIR_KEPT), copies) })
}
