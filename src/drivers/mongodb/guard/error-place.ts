// Where in a body a refusal stands. The walkers note, from the inside out, in which object and under which key they were;
// only when a query is refused is the body searched for that object.
import { Broken, Refusal } from './refusal.ts'

/** Keys from the body's own down, as in pipeline, 2, $project, x. */
export type Path = readonly (string | number)[]

/** Runs what reads one value of an object or array; a refusal on its way out learns where that was. */
export function within<T>(container: object, key: string | number, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (error instanceof Refusal || error instanceof Broken) error.trail.push({ container, key })
    throw error
  }
}

/** The path of the innermost place that is one of the body's; null where none is. */
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

/** From 0, in UTF-16 units, where the last key of a path is written in a text of JSON.stringify; null for another text. */
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
