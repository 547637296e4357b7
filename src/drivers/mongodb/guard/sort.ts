// A sort specification: 1 or -1 by field, in the order written.
import { numberOf } from './lift.ts'
import { isDocument, type Bson, type BsonDocument } from '../query.ts'
import { Broken, refusedLimit, refusedOperator } from './refusal.ts'
import { componentsOf, resolve, type Scope } from './scope.ts'
import { isPlace } from './shape.ts'

const KEYS_MAX = 32

export interface SortSpec {
  readonly printed: BsonDocument
  /** Orders raw documents as it does projected ones. */
  readonly hoistable: boolean
}

/** Without a scope the paths are those of an array's elements, of which nothing is known. */
export function sortSpecOf(of: string, value: BsonDocument, scope: Scope | null): SortSpec {
  const entries = Object.entries(value)
  if (entries.length === 0) throw new Broken(`${of} has no field to sort by`)
  if (entries.length > KEYS_MAX) throw refusedLimit('sort fields', `${of} sorts by more than ${KEYS_MAX} fields`)
  if (entries.length > 1 && entries.some(([name]) => isPlace(name))) {
    throw new Broken(
      `${of}: JSON loses the order of fields whose names are numbers, so it may not sort by several of them`,
    )
  }
  const cut: number[] = []
  let hoistable = true
  const printed: Record<string, Bson> = {}
  for (const [name, direction] of entries) {
    if (isDocument(direction)) {
      throw refusedOperator('$meta', 'a sort is by fields alone', `Sort by fields: {"field": 1} or {"field": -1}.`)
    }
    const number = numberOf(direction)
    if (number !== 1 && number !== -1) throw new Broken(`${of} takes 1 or -1 for each field`)
    if (scope === null) componentsOf(name)
    else {
      const { kind, numeric, crossed } = resolve(name, scope)
      if (kind !== 'whole' || numeric) hoistable = false
      if (crossed.length > 0) cut.push(number)
    }
    printed[name] = direction
  }
  return { printed, hoistable: hoistable && sortsCutAlike(cut) }
}

/**
 * Below an object that is cut, a hidden scalar in an array sorts as null: first going up, where it would tell of itself
 * and differ from the projected order; going down it never decides, unless a second path leads through the same array.
 */
function sortsCutAlike(directions: readonly number[]): boolean {
  return directions.length === 0 || (directions.length === 1 && directions[0] === -1)
}
