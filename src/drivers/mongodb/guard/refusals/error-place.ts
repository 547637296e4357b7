// Finds the place in the body to which a refusal belongs. While the error propagates, each level adds its object and
// key. The body is searched for these objects only after the query was refused.
import { Broken, Refusal } from './refusal.ts'

/** The keys from the top of the body to a value, such as pipeline, 2, $project, x. */
export type Path = readonly (string | number)[]

/** Runs `read` for one value of an object or array. If it throws a refusal, adds the place to the refusal. */
export function within<T>(container: object, key: string | number, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (error instanceof Refusal || error instanceof Broken) error.trail.push({ container, key })
    throw error
  }
}

/** Returns the path of the innermost place that is in the body, or null. */
export function placeOf(error: Refusal | Broken, roots: Readonly<Record<string, unknown>>): Path | null {
  const wanted = new Set(error.trail.map(({ container }) => container))
  const found = new Map<object, Path>()
  const level: (readonly [unknown, Path])[] = Object.entries(roots).map(([name, root]) => [root, [name]])
  for (let at = 0; at < level.length && found.size < wanted.size; at++) {
    const [value, path] = level[at] ?? [null, []]
    if (typeof value !== 'object' || value === null) continue
    if (wanted.has(value)) found.set(value, path)
    if (Array.isArray(value)) value.forEach((each, n) => level.push([each, [...path, n]]))
    else for (const [key, each] of Object.entries(value)) level.push([each, [...path, key]])
  }
  for (const { container, key } of error.trail) {
    const path = found.get(container)
    if (path !== undefined) return [...path, key]
  }
  return null
}

/**
 * Returns the position of the path's last key in `text`, in UTF-16 units from 0. If the path ends in an array, returns
 * the position of the element. Returns null if `text` has no such path. `text` comes from JSON.stringify.
 */
export function positionOf(text: string, path: Path): number | null {
  let at: unknown = JSON.parse(text)
  let position = 0
  for (const [n, key] of path.entries()) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return null
    position++
    for (const [name, value] of Object.entries(at)) {
      const label = Array.isArray(at) ? 0 : JSON.stringify(name).length + 1
      if (name !== String(key)) position += label + JSON.stringify(value).length + 1
      else if (n === path.length - 1) return position
      else {
        position += label
        at = value
        break
      }
    }
  }
  return position
}
