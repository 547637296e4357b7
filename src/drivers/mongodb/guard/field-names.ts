// What a name of a field, and a path of them, must be wherever a query writes one: in a key or in a text.
import { Broken, refusedLimit, refusedPath, shown } from './refusal.ts'

const PATH_MAX = 1_024
const COMPONENTS_MAX = 100
const REFERENCE = new Set(['$id', '$ref', '$db'])

/** The components of a path that is read. Throws Broken and Refusal. */
export function componentsOf(path: string): readonly string[] {
  const components = split(path)
  for (const [n, component] of components.entries()) {
    if (component === '') throw new Broken('a path holds an empty name')
    if (component.startsWith('$') && !(n > 0 && REFERENCE.has(component))) {
      throw refusedPath(path, 'A field whose name starts with $ cannot be read by a path.')
    }
  }
  return components
}

/** The components of a path that a stage writes. Throws Broken and Refusal. */
export function outputPath(of: string, path: string): readonly string[] {
  const components = split(path)
  if (components.some((component) => component === '' || component.startsWith('$'))) throw noName(of, path)
  return components
}

/** A name for a field of an output: not empty, without dots, no operator. */
export function checkName(of: string, name: string): void {
  if (outputPath(of, name).length > 1) throw noName(of, name)
}

/** Longer numbers are names like others to JSON's reader. */
const INTEGER = /^(?:0|[1-9]\d{0,9})$/

/**
 * JSON's reader puts names that are whole numbers before all others, in ascending order: how they were written is lost. Of
 * a value the order counts, so such an object is refused. Throws Broken.
 */
export function checkOrder(names: readonly string[]): void {
  if (names.length < 2) return
  const number = names.find((name) => INTEGER.test(name))
  if (number === undefined) return
  throw new Broken(
    `an object holds the name "${number}" beside others: JSON loses the order of names that are numbers, and the order of a value counts; write it as {"$arrayToObject": [[["${number}", …], …]]}`,
  )
}

function noName(of: string, name: string): Error {
  return new Broken(`${of}: ${shown(name) || 'an empty text'} cannot be the name of a field`)
}

/** `__proto__` is no name anywhere, as it is none in a body. */
function split(path: string): readonly string[] {
  if (path.length > PATH_MAX) throw tooLong(`${path.length} characters`, `${PATH_MAX} characters`)
  const components = path.split('.')
  if (components.length > COMPONENTS_MAX) throw tooLong(`${components.length} names`, `${COMPONENTS_MAX} names`)
  if (components.includes('__proto__')) throw new Broken('__proto__: may not be the name of a field')
  return components
}

function tooLong(found: string, most: string): Error {
  return refusedLimit('path', `a path has ${found}; ${most} are the most`, 'Write paths as GET …/schema lists them.')
}
