// Confines an expression of a stage, checks it against the bounds, and computes the shape of its value. The shape of a
// path is the shape of its field. The shape of an object expression is an object with the same fields.
import { expression } from './expression.ts'
import { sizeOf } from '../bounds/amount.ts'
import { anything, STORED, type Extent } from '../bounds/value-size.ts'
import { grown } from '../bounds/growth.ts'
import { isArray, isDocument, partsIn, type Bson } from '../../confined-query.ts'
import { variable, type Scope } from '../documents/scope.ts'
import { closed, find, shapeWith, valueAt, type Shape } from '../documents/document-shape.ts'

export interface Computed {
  readonly printed: Bson
  readonly extent: Extent
  readonly shape: Shape
}

/** Throws Broken if the expression is malformed, and Refusal if it is not allowed. */
export function computed(value: Bson | undefined, scope: Scope): Computed {
  const printed = expression(value, scope)
  const { meter, variables, shape, part } = scope
  const extent = grown(value, {
    meter,
    variables,
    // `part` is set inside $redact: only the size of the object is known into which $redact has descended.
    document: (path) => (part === null ? valueAt(shape, path) : anything(sizeOf(part))),
    root: (path) => valueAt(shape, path),
  })
  return { printed, extent, shape: shapeOf(value, extent, scope) }
}

function shapeOf(value: Bson | undefined, extent: Extent, scope: Scope): Shape {
  if (typeof value === 'string') {
    if (!value.startsWith('$')) return shapeWith(extent)
    const found = value.startsWith('$$')
      ? variable(value, scope)?.shape
      : find(scope.shape, value.slice(1).split('.')).shape
    if (found === undefined) return shapeWith(extent)
    const { kids, open, cut } = found
    if (kids === null) return { ...found, ...shapeWith(extent), cut }
    // The path goes through an array, so the value is an array of such objects.
    return extent.isSingle ? found : { kids, open, cut, extent: { ...STORED, usual: extent.usual } }
  }
  if (!isDocument(value)) return shapeWith(extent)
  const entries = Object.entries(value)
  if (entries.length === 0 || entries.some(([name]) => name.startsWith('$')))
    return isOfStored(value, scope) ? { ...shapeWith(extent), isStored: true } : shapeWith(extent)
  const { fields } = extent
  return closed(new Map(entries.map(([name, below]) => [name, shapeOf(below, fields?.get(name) ?? extent, scope)])))
}

/** Operators that make a text or a date, and names of their arguments. None of them can choose between constants. */
const TEXTS = new Set(
  '$concat $dateToString $dateTrunc $ltrim $rtrim $toLower $toString $toUpper $trim binSize chars date format input startOfWeek timezone unit'.split(
    ' ',
  ),
)

/** True if the expression makes texts or dates only of stored values, so that the query cannot choose their hashes. */
function isOfStored(value: Bson, scope: Scope): boolean {
  if (typeof value === 'string') return !value.startsWith('$') || shapeOf(value, STORED, scope).isStored === true
  const parts = partsIn(value)
  const isText = isArray(value) || !isDocument(value) || Object.keys(value).every((name) => TEXTS.has(name))
  return isText && parts.every((part) => isOfStored(part, scope))
}

/** Returns the shape of a document that $replaceRoot or $replaceWith has replaced with a value of this shape. */
export function asDocument(shape: Shape): Shape {
  return shape.kids === null ? { kids: new Map(), open: true, cut: shape.cut } : shape
}
