// Confines an expression of a stage, checks it against the bounds, and computes the shape of its value. A path has the
// shape of its target; an object has the shape of its fields.
import { expression } from './expression.ts'
import { at, DOCUMENT, STORED, type Extent } from './value-size.ts'
import { grown } from './growth.ts'
import { isDocument, type Bson } from '../query.ts'
import { variable, type Scope } from './scope.ts'
import { closed, find, valueAt, WHOLE, type Shape } from './document-shape.ts'

export interface Computed {
  readonly printed: Bson
  readonly extent: Extent
  readonly shape: Shape
}

/** Throws Refusal and Broken. */
export function computed(value: Bson | undefined, scope: Scope): Computed {
  const printed = expression(value, scope)
  const { meter, variables, shape, part } = scope
  const extent = grown(value, {
    meter,
    variables,
    document: (path) => (part === DOCUMENT ? valueAt(shape, path) : at([part, ...path].join('.'), STORED)),
    root: (path) => valueAt(shape, path),
  })
  return { printed, extent, shape: shapeOf(value, extent, scope) }
}

function shapeOf(value: Bson | undefined, extent: Extent, scope: Scope): Shape {
  if (typeof value === 'string') {
    if (value.startsWith('$$')) return variable(value, scope)?.shape ?? { ...WHOLE, extent }
    const found = value.startsWith('$') ? find(scope.shape, value.slice(1).split('.')).shape : WHOLE
    return found.kids === null ? { ...found, extent } : found
  }
  if (!isDocument(value)) return { ...WHOLE, extent }
  const entries = Object.entries(value)
  if (entries.length === 0 || entries.some(([name]) => name.startsWith('$'))) return { ...WHOLE, extent }
  const { fields } = extent
  return closed(new Map(entries.map(([name, below]) => [name, shapeOf(below, fields?.get(name) ?? extent, scope)])))
}

/** The shape of a value that becomes the whole document. */
export function asDocument(shape: Shape): Shape {
  return shape.kids === null ? { ...shape, kids: new Map(), open: true } : shape
}
