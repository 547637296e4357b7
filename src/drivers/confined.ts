// Marks a query that a guard has confined. Only drivers/*/guard/confine.ts may call seal(), which lint checks; run()
// calls unseal(). Query text does not type-check as Confined. A forged object is a TypeError, and so is another kind's
// query.
import type { DatasourceType } from './driver.ts'

declare const brand: unique symbol
export interface Confined {
  readonly [brand]: true
}

const sealed = new WeakMap<object, { readonly type: DatasourceType; readonly query: unknown }>()

/** Freezes a driver's query and returns a Confined object for it. */
export function seal(type: DatasourceType, query: object): Confined {
  const confined = Object.freeze({}) as Confined
  sealed.set(confined, { type, query: Object.freeze(query) })
  return confined
}

/** Returns the driver's query of a Confined object. Throws TypeError for a forged object or another kind's query. */
export function unseal<Q>(confined: Confined, type: DatasourceType): Q {
  const held = sealed.get(confined)
  if (held?.type !== type) throw new TypeError(`not a query confined for ${type}`)
  return held.query as Q
}
