// Marks a query that a guard has confined. Only drivers/*/guard/confine.ts may call seal(): a lint rule checks this.
// run() opens the query with unseal(), which throws TypeError for a forged object and for a query of another kind of
// database. Query text does not type-check as Confined.
import type { DatasourceType } from './datasource-type.ts'

declare const brand: unique symbol
export interface Confined {
  readonly [brand]: true
}

/** Holds the query in a private field. The field cannot be forged, and it costs less than an entry in a WeakMap. */
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
// Without its `constructor`, a sealed query does not lead to the class that could seal another query.
Reflect.deleteProperty(Sealed.prototype, 'constructor')

/** Freezes a driver's query and returns a Confined object for it. */
export function seal(type: DatasourceType, query: object): Confined {
  return new Sealed(type, query) as unknown as Confined
}

/**
 * Returns the driver's query of a Confined object. Throws TypeError for a forged object and for a query of another kind
 * of database.
 */
export function unseal<Q>(confined: Confined, type: DatasourceType): Q {
  const query = Sealed.open(confined, type)
  if (query === undefined) throw new TypeError(`not a query confined for ${type}`)
  return query as Q
}
