// A Confined is a query that a guard has confined. Only drivers/*/guard/confine.ts may make one with seal(): a lint
// rule checks this. run() opens it with unseal(), which throws TypeError if the object was not made by seal(), or is
// for another kind of database. A query that is only a string does not type-check as a Confined.
import type { DatasourceType } from './datasource-type.ts'

declare const brand: unique symbol
export interface Confined {
  readonly [brand]: true
}

/** A private field cannot be forged, and costs less than an entry in a WeakMap. */
class Sealed {
  readonly #type: DatasourceType
  readonly #query: unknown

  constructor(type: DatasourceType, query: object) {
    this.#type = type
    this.#query = Object.freeze(query)
  }

  /** Returns undefined for an object that was not made by seal(), or is for another kind of database. */
  static open(confined: object, type: DatasourceType): unknown {
    return #query in confined && confined.#type === type ? confined.#query : undefined
  }
}
// Otherwise, `constructor` would lead from a sealed query to the class, which can seal any query.
Reflect.deleteProperty(Sealed.prototype, 'constructor')

export function seal(type: DatasourceType, query: object): Confined {
  return new Sealed(type, query) as unknown as Confined
}

/**
 * Returns the query in a Confined. Throws TypeError if the object was not made by seal(), or is for another kind of
 * database.
 */
export function unseal<Q>(confined: Confined, type: DatasourceType): Q {
  const query = Sealed.open(confined, type)
  if (query === undefined) throw new TypeError(`not a query confined for ${type}`)
  return query as Q
}
