// A sort specification: 1 or -1 by field, in the order written.
import { numberOf } from './parse-ejson.ts'
import { isDocument, type Bson, type BsonDocument } from '../query.ts'
import { within } from './error-place.ts'
import { Broken, refusedLimit, refusedOperator } from './refusal.ts'
import { componentsOf } from './field-names.ts'
import { resolve, type Scope } from './scope.ts'
import { isPlace } from './document-shape.ts'

const KEYS_MAX = 32

export interface SortSpec {
  readonly printed: BsonDocument
  /** Every path is shown whole: it may stand in front of the projection, for good or (EarlySort) on trial. */
  readonly hoistable: boolean
  /** Of the paths through partly shown objects the components that lead there: raw documents may be ordered otherwise. */
  readonly cut: readonly (readonly string[])[]
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
  const cut: (readonly string[])[] = []
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
      const { kind, numeric, crossed, components } = within(value, name, () => resolve(name, scope))
      if (kind !== 'whole' || numeric) hoistable = false
      if (crossed.length > 0) cut.push(components.slice(0, crossed.length))
    }
    printed[name] = direction
  }
  return { printed, hoistable, cut }
}
