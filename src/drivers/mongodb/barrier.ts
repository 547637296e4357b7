// The injected projection, and what may have to stand behind it: the optimizer moves a $match in front of a projection
// although, where null is compared on a path through arrays, the results differ (guard/mongodb.md B10). Nothing moves past
// a $limit: one that cuts nothing is put in between, on demand.
import type { BsonDocument } from './query.ts'

export class Barrier {
  readonly #pipeline: BsonDocument[]
  readonly #projection: BsonDocument
  #placed = false
  #raised = false

  constructor(pipeline: BsonDocument[], projection: BsonDocument) {
    this.#pipeline = pipeline
    this.#projection = projection
  }

  /** Ends what was hoisted: from here on the pipeline sees exposed fields alone. */
  place(): void {
    this.#placed = true
    this.#pipeline.push(this.#projection)
    if (this.#raised) this.#pipeline.push(WALL)
  }

  raise(): void {
    if (!this.#raised && this.#placed) this.#pipeline.splice(this.#pipeline.indexOf(this.#projection) + 1, 0, WALL)
    this.#raised = true
  }
}

const WALL: BsonDocument = { $limit: Number.MAX_SAFE_INTEGER }
