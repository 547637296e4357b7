// What is known of the value of an expression: that of a path is what the path leads to, that of an object its fields.
import { isDocument, type Bson } from '../query.ts'
import { variable, type Scope } from './scope.ts'
import { closed, find, WHOLE, type Shape } from './shape.ts'

/** Of an expression that was checked. */
export function computed(value: Bson | undefined, scope: Scope): Shape {
  if (typeof value === 'string') {
    if (value.startsWith('$$')) return variable(value, scope)?.shape ?? WHOLE
    return value.startsWith('$') ? find(scope.shape, value.slice(1).split('.')).shape : WHOLE
  }
  if (!isDocument(value)) return WHOLE
  const entries = Object.entries(value)
  if (entries.length === 0 || entries.some(([name]) => name.startsWith('$'))) return WHOLE
  return closed(new Map(entries.map(([name, below]) => [name, computed(below, scope)])))
}

/** A shape as that of a whole document. */
export function asDocument(shape: Shape): Shape {
  return shape.kids === null ? { kids: new Map(), open: true, cut: shape.cut } : shape
}
