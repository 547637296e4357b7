// Marks a query that a guard has confined. Only drivers/*/guard/confine.ts may call seal(), which lint checks; run() calls unseal(). Query
// text does not type-check as Confined. A forged object is a TypeError. So is a query of another kind of database.
import type { DatasourceType } from './driver.ts'

declare const brand: unique symbol
export interface Confined {
  readonly [brand]: true
}

/** Private fields cannot be forged, and cost less than a WeakMap for each query. */
class Sealed {
  readonly #type: DatasourceType
  readonly #query: unknown

  constructor(type: DatasourceType, query: object) {
    this.#type = type
    this.#query = Object.freeze(query)
  }

  /** Returns the query of a genuine object of this kind. Returns undefined for any other value. */
  static open(confined: object, type: DatasourceType): unknown {
    return #query in confined && confined.#type === type ? confined.#query : undefined
  }
}
// This removes the way from a query to the class that could create another one.
Reflect.deleteProperty(Sealed.prototype, 'constructor')

/** Freezes a driver's query and returns a Confined object for it. */
export function seal(type: DatasourceType, query: object): Confined {
  return new Sealed(type, query) as unknown as Confined
}

/** Returns the driver's query of a Confined object. Throws TypeError for a forged object or another kind's query. */
export function unseal<Q>(confined: Confined, type: DatasourceType): Q {
  const query = Sealed.open(confined, type)
  if (query === undefined) throw new TypeError(`not a query confined for ${type}`)
  return query as Q
}
