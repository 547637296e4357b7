// mongod 6.0, where it projects what it has computed (a view's field, the measurements of a time series), leaves gaps in
// arrays for the elements that it takes out: nobody sees them in an answer, but $size, $map and $unwind count them. Here
// the expression that closes them, and keeps everything else.
import type { Tree } from './exposed.ts'
import type { Bson } from '../query.ts'

/** Arrays in an array of an array are emptied: what is left in them is not known to be without gaps. */
const NESTED_MAX = 2

/** The value of a field that the projection cut, without gaps; nothing where there is no such field. */
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

/** An object with the fields below it that are cut as well. */
function parts(value: string, tree: Tree): Bson {
  const fields: Record<string, Bson> = {}
  for (const [name, below] of tree) if (below !== null) fields[name] = withoutGaps(`${value}.${name}`, below)
  if (Object.keys(fields).length === 0) return value
  return { $cond: [{ $eq: [{ $type: value }, 'object'] }, { $mergeObjects: [value, fields] }, value] }
}
