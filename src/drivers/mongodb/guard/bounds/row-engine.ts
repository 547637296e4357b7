// Since mongod 6.0, the slot-based engine compiles the stages up to a $group or $lookup, and no timeout ends the
// compilation. With 900 $cond sums, a query took 1.2 s of processor time, and its explain over 60 s. So large pipelines
// are kept out of this engine: it compiles neither $redact nor the stages before and after it.
import { isArray, isDocument, partsIn, type Bson, type BsonDocument } from '../../confined-query.ts'

/**
 * A pipeline with more parts is kept out of the engine. 300 parts are about 40 $cond sums, for which an explain takes
 * 30 ms.
 */
const PARTS_MAX = 300

const COMPILED = new Set(['$group', '$bucket', '$bucketAuto', '$sortByCount', '$count', '$lookup'])

/** Adds a $redact that keeps all documents, before the first stage that would be compiled. */
export function keepFromCompiling(pipeline: BsonDocument[]): void {
  const first = pipeline.findIndex((stage) => Object.keys(stage).some((name) => COMPILED.has(name)))
  if (first === -1 || partsLeft(pipeline, PARTS_MAX) >= 0) return
  pipeline.splice(first, 0, { $redact: '$$KEEP' })
}

/** Returns `most` minus the number of parts of the value. Stops below 0. A list of constants counts as one part. */
function partsLeft(value: Bson, most: number): number {
  const parts = partsIn(value)
  let left = most - 1
  if (isArray(value) && parts.every(isConstant)) return left
  for (const part of parts) {
    if (left < 0) return left
    left = partsLeft(part, left)
  }
  return left
}

function isConstant(value: Bson): boolean {
  return typeof value === 'string' ? !value.startsWith('$') : !isArray(value) && !isDocument(value)
}
