// A sort specification: 1 or -1 by field, in the order written.
import { numberOf } from './lift.ts'
import type { Bson, BsonDocument } from './query.ts'
import { Broken, refusedLimit, refusedOperator } from './refusal.ts'
import { componentsOf, resolve, type Scope } from './scope.ts'
import { isPlace, type Found } from './shape.ts'

const KEYS_MAX = 32

export interface SortSpec {
  readonly printed: BsonDocument
  readonly paths: readonly Found[]
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
  const paths: Found[] = []
  const printed: Record<string, Bson> = {}
  for (const [name, direction] of entries) {
    if (typeof direction === 'object' && !(numberOf(direction) !== undefined)) {
      throw refusedOperator('$meta', 'a sort is by fields alone', `Sort by fields: {"field": 1} or {"field": -1}.`)
    }
    const number = numberOf(direction)
    if (number !== 1 && number !== -1) throw new Broken(`${of} takes 1 or -1 for each field`)
    if (scope === null) componentsOf(name)
    else paths.push(resolve(name, scope))
    printed[name] = direction
  }
  return { printed, paths }
}
