// The brand of a query that a guard has confined. Only drivers/*/guard/confine.ts may seal (lint holds it); run() unseals.
// Raw text does not type-check, a forged object is a TypeError, another kind's query is refused.
import type { DatasourceType } from './driver.ts'

declare const brand: unique symbol
export interface Confined {
  readonly [brand]: true
}

const sealed = new WeakMap<object, { readonly type: DatasourceType; readonly query: unknown }>()

/** Freezes a driver's query and gives it the brand. */
export function seal(type: DatasourceType, query: object): Confined {
  const confined = Object.freeze({}) as Confined
  sealed.set(confined, { type, query: Object.freeze(query) })
  return confined
}

/** The driver's own query behind the brand. Throws TypeError for what no guard sealed, or another kind's did. */
export function unseal<Q>(confined: Confined, type: DatasourceType): Q {
  const held = sealed.get(confined)
  if (held?.type !== type) throw new TypeError(`not a query confined for ${type}`)
  return held.query as Q
}
