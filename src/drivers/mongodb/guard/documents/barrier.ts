// Places the injected projection and, if necessary, a barrier after it. Without a barrier, two things can go wrong.
// Engines move a $match before a projection, although a comparison with null on a path through arrays then gives
// another result (docs/guard/mongodb.md). And mongod 6.0 drops a projection before a $group that reads whole documents.
// A $limit does not help: engines move the $limit to the front, and then move the $match before two projections in a
// row (that of a view, and that of the guard). The barrier is a stage that computes a field again, with the same value.
// A stage that reads the field cannot move before the barrier, and the engine cannot drop the field, because the
// barrier reads it.
import type { Bson, BsonDocument } from '../../confined-query.ts'

export class Barrier {
  readonly #pipeline: BsonDocument[]
  readonly #projection: BsonDocument
  readonly #first: string
  /** The fields that are computed again. A Set, because a name may be `constructor`. */
  readonly #names = new Set<string>()
  readonly #computed: Record<string, Bson> = {}
  #place = -1

  /** `first` is any top-level field that the projection keeps. */
  constructor(pipeline: BsonDocument[], projection: BsonDocument, first: string) {
    this.#pipeline = pipeline
    this.#projection = projection
    this.#first = first
  }

  /**
   * Adds the projection, so that later stages see only exposed fields. `around` gets a function that prints the stage
   * which computes fields again, and calls it now or later.
   */
  place(around: (print: () => void) => void = (print) => print()): void {
    this.#place = this.#pipeline.push(this.#projection)
    if (this.#names.size > 0) around(() => void this.#pipeline.push({ $set: this.#computed }))
  }

  /**
   * Keeps later stages that read this top-level field after the projection. Without a name, applies to stages that read
   * the whole document.
   */
  raise(name = this.#first): void {
    if (this.#names.has(name)) return
    this.compute(name, { $cond: [{ $eq: [{ $type: `$${name}` }, 'missing'] }, '$$REMOVE', `$${name}`] })
  }

  /** Computes the field again after the projection, but only once. */
  compute(name: string, value: Bson): void {
    if (this.#names.has(name)) return
    this.#names.add(name)
    Object.defineProperty(this.#computed, name, { value, enumerable: true })
    if (this.#place !== -1 && this.#names.size === 1) this.#pipeline.splice(this.#place, 0, { $set: this.#computed })
  }
}
