// The injected projection, and the barrier that may be needed after it. Engines move a $match before a projection, although
// results differ if null is compared on a path through arrays (docs/guard/mongodb.md). mongod 6.0 drops a projection before
// a $group that reads whole documents. A $limit does not prevent this: it moves to the front itself, and after two
// projections in a row (a view's, then ours) the $match follows. The barrier is a stage that computes the field anew, to
// the same value. No stage that reads the field can move before it, and the field that it reads is kept.
import type { Bson, BsonDocument } from '../query.ts'

export class Barrier {
  readonly #pipeline: BsonDocument[]
  readonly #projection: BsonDocument
  readonly #first: string
  /** A Set, because a name may be `constructor`. */
  readonly #names = new Set<string>()
  readonly #computed: Record<string, Bson> = {}
  #place = -1

  /** `first` is any top-level field that the projection keeps. */
  constructor(pipeline: BsonDocument[], projection: BsonDocument, first: string) {
    this.#pipeline = pipeline
    this.#projection = projection
    this.#first = first
  }

  /** Adds the projection: all later stages see exposed fields only. */
  place(): void {
    this.#place = this.#pipeline.push(this.#projection)
    if (this.#names.size > 0) this.#pipeline.push({ $set: this.#computed })
  }

  /** Keeps stages that read this top-level field behind the projection; without a name, stages that read the document. */
  raise(name = this.#first): void {
    if (this.#names.has(name)) return
    this.compute(name, { $cond: [{ $eq: [{ $type: `$${name}` }, 'missing'] }, '$$REMOVE', `$${name}`] })
  }

  /** Computes the field anew after the projection, once. */
  compute(name: string, value: Bson): void {
    if (this.#names.has(name)) return
    this.#names.add(name)
    Object.defineProperty(this.#computed, name, { value, enumerable: true })
    if (this.#place !== -1 && this.#names.size === 1) this.#pipeline.splice(this.#place, 0, { $set: this.#computed })
  }
}
