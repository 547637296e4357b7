// If mongod 6.0 projects computed values (fields of a view, measurements of a time series), it leaves gaps in arrays at
// the places of hidden elements. Answers do not show the gaps, but $size, $map and $unwind count them, which reveals
// how many elements are hidden. The expression that this file builds closes the gaps.
import { plus, scaled } from '../bounds/amount.ts'
import type { Tree } from './exposed-tree.ts'
import type { Meter } from '../bounds/step-meter.ts'
import { ELEMENT_LEAST, OBJECT_BYTES, type Extent } from '../bounds/value-size.ts'
import type { Bson } from '../../confined-query.ts'

/** Arrays that are nested more deeply may still have gaps, so they are emptied. */
const NESTED_MAX = 2

/** Closes the gaps in a field of which the projection keeps only a part. A missing field stays missing. */
export function withoutGaps(path: string, tree: Tree): Bson {
  return { $cond: [{ $eq: [{ $type: path }, 'missing'] }, '$$REMOVE', closed(path, tree, NESTED_MAX)] }
}

function closed(value: string, tree: Tree, nested: number): Bson {
  if (nested === 0) return { $cond: [{ $isArray: [value] }, [], parts(value, tree)] }
  const isArray = { $isArray: [value] }
  const list = { $cond: [isArray, value, [value]] }
  const kept = { $filter: { input: list, as: 'g', cond: { $ne: [{ $type: '$$g' }, 'missing'] } } }
  const each = { $map: { input: kept, as: 'g', in: closed('$$g', tree, nested - 1) } }
  return { $let: { vars: { a: each }, in: { $cond: [isArray, '$$a', { $arrayElemAt: ['$$a', 0] }] } } }
}

function parts(value: string, tree: Tree): Bson {
  const fields: Record<string, Bson> = {}
  for (const [name, below] of tree) if (below !== null) fields[name] = withoutGaps(`${value}.${name}`, below)
  if (Object.keys(fields).length === 0) return value
  return { $cond: [{ $eq: [{ $type: value }, 'object'] }, { $mergeObjects: [value, fields] }, value] }
}

const CLOSING = 15
/** The minimum bytes of an object in an array of an array. */
const OBJECT_LEAST = 2 * ELEMENT_LEAST

/** Counts the steps of withoutGaps() for this value. */
export function countGaps(value: Extent, tree: Tree, meter: Meter): void {
  const levels = partsIn(tree)
  meter.step(scaled(plus(1, value.items, scaled(value.bytes, 1 / OBJECT_LEAST)), CLOSING * levels))
  meter.made({ ...value, kept: scaled(value.items, OBJECT_BYTES * levels) })
}

/** Returns the number of partly exposed objects. */
function partsIn(tree: Tree): number {
  return [...tree.values()].reduce((all, below) => all + (below === null ? 0 : partsIn(below)), 1)
}
