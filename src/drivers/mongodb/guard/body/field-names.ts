// Checks the names and paths of fields, both in keys and in strings.
import { Broken, refusedLimit, refusedPath, shown } from '../refusals/refusal.ts'

const PATH_MAX = 1_024
const COMPONENTS_MAX = 100
const REFERENCE = new Set(['$id', '$ref', '$db'])

/** Splits a path that a query reads. Throws Broken if it is malformed, and Refusal if it is not allowed. */
export function componentsOf(path: string): readonly string[] {
  const components = split(path)
  for (const [n, component] of components.entries()) {
    if (component === '') throw new Broken('a path contains an empty name')
    if (component.startsWith('$') && !(n > 0 && REFERENCE.has(component))) {
      throw refusedPath(path, 'A path cannot read a field whose name starts with $.')
    }
  }
  return components
}

/** Splits a path that a stage writes. Throws Broken if it is malformed, and Refusal if it is not allowed. */
export function outputPath(of: string, path: string): readonly string[] {
  const components = split(path)
  if (components.some((component) => component === '' || component.startsWith('$'))) throw noName(of, path)
  return components
}

/** Checks the name of an output field: it must not be empty, contain a dot or start with $. */
export function checkName(of: string, name: string): void {
  if (outputPath(of, name).length > 1) throw noName(of, name)
}

/** Names that JSON.parse may treat as an array index: whole numbers of at most ten digits. */
const INTEGER = /^(?:0|[1-9]\d{0,9})$/

/**
 * JSON.parse moves names that are whole numbers to the front. In a value, the order of fields matters, and it is lost.
 * Throws Broken for an object that has both such a name and other names.
 */
export function checkOrder(names: readonly string[]): void {
  if (names.length < 2) return
  const number = names.find((name) => INTEGER.test(name))
  if (number === undefined) return
  throw new Broken(
    `an object has the name "${number}" beside other names: JSON does not keep the order of names that are numbers, and the order matters; write the object as {"$arrayToObject": [[["${number}", …], …]]}`,
  )
}

function noName(of: string, name: string): Error {
  return new Broken(`${of}: ${shown(name) || 'an empty string'} cannot be the name of a field`)
}

/** Refuses `__proto__`, as readBody() does for keys. */
function split(path: string): readonly string[] {
  if (path.length > PATH_MAX) throw tooLong(`${path.length} characters`, `${PATH_MAX} characters`)
  const components = path.split('.')
  if (components.length > COMPONENTS_MAX) throw tooLong(`${components.length} names`, `${COMPONENTS_MAX} names`)
  if (components.includes('__proto__')) throw new Broken('__proto__: must not be the name of a field')
  return components
}

function tooLong(found: string, most: string): Error {
  return refusedLimit('path', `a path has ${found}; the limit is ${most}`, 'Write paths as GET …/schema lists them.')
}
