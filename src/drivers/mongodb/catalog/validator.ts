// Reads the paths in the $jsonSchema validator of a collection. A validator that only warns, or does not apply to old
// documents, guarantees nothing, so only its names and descriptions are used.
import type { Document } from 'mongodb'
import { LABEL_CHARS_MAX, LABELS_MAX, type Scalar } from '../../driver.ts'

export interface Declared {
  readonly path: readonly string[]
  readonly types: readonly string[]
  readonly description: string | null
  /** True if every document has a value at the path, and the value is never null. */
  readonly isAlwaysThere: boolean
  /** The allowed values except null. Undefined if every value is allowed. */
  readonly labels?: readonly Scalar[]
}

export interface Validator {
  readonly description: string | null
  readonly paths: readonly Declared[]
}

const DEPTH_MAX = 8
const PATHS_MAX = 500

/** `options` come from listCollections. */
export function readValidator(options: unknown): Validator {
  if (!isObject(options) || !isObject(options['validator'])) return { description: null, paths: [] }
  const schema = options['validator']['$jsonSchema']
  if (!isObject(schema)) return { description: null, paths: [] }
  const action: unknown = options['validationAction'] ?? 'error'
  const level: unknown = options['validationLevel'] ?? 'strict'
  const paths: Declared[] = []
  const isHeld = action === 'error' && level === 'strict'
  walk(schema, [], { isEnforced: isHeld, isHeld }, paths)
  return { description: textOf(schema['description']), paths }
}

/** `isEnforced`: every document matches the schema. `isHeld`: every document has the parent object. */
interface Force {
  readonly isEnforced: boolean
  readonly isHeld: boolean
}

function walk(schema: Document, above: readonly string[], { isEnforced, isHeld }: Force, into: Declared[]): void {
  const { properties, required } = schema
  if (!isObject(properties) || above.length >= DEPTH_MAX) return
  const needed = new Set(Array.isArray(required) ? required : [])
  for (const [name, inner] of Object.entries(properties)) {
    if (!isObject(inner) || into.length >= PATHS_MAX) continue
    const path = [...above, name]
    const types = typesOf(inner)
    const isRequired = isHeld && needed.has(name)
    const isAlwaysThere = isRequired && types.length > 0 && !types.includes('null')
    const labels = isEnforced ? labelsOf(inner['enum']) : undefined
    const said = { path, types, description: textOf(inner['description']), isAlwaysThere }
    into.push(labels === undefined ? said : { ...said, labels })
    walk(inner, path, { isEnforced, isHeld: isAlwaysThere && types.every((type) => type === 'object') }, into)
    if (isObject(inner['items'])) walk(inner['items'], path, { isEnforced, isHeld: false }, into)
  }
}

function labelsOf(values: unknown): readonly Scalar[] | undefined {
  if (!Array.isArray(values) || values.length > LABELS_MAX) return undefined
  const some = values.filter((value: unknown) => value !== null)
  return some.length > 0 && some.every(isLabel) ? some : undefined
}

function isLabel(value: unknown): value is Scalar {
  if (typeof value === 'string') return value.length <= LABEL_CHARS_MAX
  return typeof value === 'number' ? Number.isFinite(value) : typeof value === 'boolean'
}

function typesOf(schema: Document): readonly string[] {
  const types: unknown = schema['bsonType'] ?? schema['type']
  if (typeof types === 'string') return [types]
  return Array.isArray(types) ? types.filter((type) => typeof type === 'string') : []
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value.slice(0, 4_000) : null
}

function isObject(value: unknown): value is Document {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
