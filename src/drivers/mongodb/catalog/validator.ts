// What a collection's $jsonSchema validator says of its paths. One that only warns, or that lets old documents be, says
// nothing certain, so only its names and comments are taken.
import type { Document } from 'mongodb'

export interface Declared {
  readonly path: readonly string[]
  readonly types: readonly string[]
  readonly description: string | null
  /** Every document holds it, and never as null. */
  readonly isAlwaysThere: boolean
}

export interface Validator {
  readonly description: string | null
  readonly paths: readonly Declared[]
}

const DEPTH_MAX = 8
const PATHS_MAX = 500

/** Reads the options of listCollections. */
export function readValidator(options: unknown): Validator {
  if (!isObject(options) || !isObject(options['validator'])) return { description: null, paths: [] }
  const schema = options['validator']['$jsonSchema']
  if (!isObject(schema)) return { description: null, paths: [] }
  const action: unknown = options['validationAction'] ?? 'error'
  const level: unknown = options['validationLevel'] ?? 'strict'
  const paths: Declared[] = []
  walk(schema, [], action === 'error' && level === 'strict', paths)
  return { description: textOf(schema['description']), paths }
}

function walk(schema: Document, above: readonly string[], isHeld: boolean, into: Declared[]): void {
  const { properties, required } = schema
  if (!isObject(properties) || above.length >= DEPTH_MAX) return
  const needed = new Set(Array.isArray(required) ? required : [])
  for (const [name, inner] of Object.entries(properties)) {
    if (!isObject(inner) || into.length >= PATHS_MAX) continue
    const path = [...above, name]
    const types = typesOf(inner)
    const isRequired = isHeld && needed.has(name)
    const isAlwaysThere = isRequired && types.length > 0 && !types.includes('null')
    into.push({ path, types, description: textOf(inner['description']), isAlwaysThere })
    walk(inner, path, isAlwaysThere && types.every((type) => type === 'object'), into)
    if (isObject(inner['items'])) walk(inner['items'], path, false, into)
  }
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
