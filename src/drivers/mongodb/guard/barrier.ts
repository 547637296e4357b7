// The injected projection, and the wall that may have to stand behind it. Engines move a $match in front of a projection
// although, where null is compared on a path through arrays, the results differ (docs/guard/mongodb.md), and mongod 6.0
// drops a projection in front of a $group that reads whole documents. A $limit does not hold them: it moves to the front
// itself, and with two projections in a row (a view's, then ours) the $match follows. What does: a stage that computes
// the field anew, to the same value; nothing that reads the field can pass it, and what it reads is kept.
import type { Check } from './runtime-checks.ts'
import type { Bson, BsonDocument } from '../query.ts'

export class Barrier {
  readonly #pipeline: BsonDocument[]
  readonly #projection: BsonDocument
  readonly #first: string
  /** A name may be `constructor`: it is no key of an object here that has any of its own. */
  readonly #names = new Set<string>()
  readonly #computed: Record<string, Bson> = {}
  #place = -1

  /** `first` is the name of any field that the projection keeps at the top. */
  constructor(pipeline: BsonDocument[], projection: BsonDocument, first: string) {
    this.#pipeline = pipeline
    this.#projection = projection
    this.#first = first
  }

  /** Ends what was hoisted: from here on the pipeline sees exposed fields alone. */
  place(): void {
    this.#place = this.#pipeline.push(this.#projection)
    if (this.#names.size > 0) this.#pipeline.push({ $set: this.#computed })
  }

  /** `name` is the top-level field that must stay behind; without one, the whole document. */
  raise(name = this.#first): void {
    if (this.#names.has(name)) return
    this.compute(name, { $cond: [{ $eq: [{ $type: `$${name}` }, 'missing'] }, '$$REMOVE', `$${name}`] })
  }

  /** A document passes where the check holds, or fails; that is seen when the field is computed. */
  check({ name, holds }: Check): void {
    if (this.#place === -1) return
    this.raise(name)
    Object.defineProperty(this.#computed, name, { value: { $cond: [holds, this.#computed[name], null] } })
  }

  /** The field is computed anew, if it is not already: it stays behind as well. */
  compute(name: string, value: Bson): void {
    if (this.#names.has(name)) return
    this.#names.add(name)
    Object.defineProperty(this.#computed, name, { value, enumerable: true, configurable: true })
    if (this.#place !== -1 && this.#names.size === 1) this.#pipeline.splice(this.#place, 0, { $set: this.#computed })
  }
}
