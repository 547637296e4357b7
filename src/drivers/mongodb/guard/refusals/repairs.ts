// Suggests repaired bodies for a refused body. Each repair makes one change: it uses a near name, removes an output
// field, or removes a $out or $merge at the end. It never removes a condition, because the query would then answer
// another question.
import type { Denied } from '../../../driver.ts'
import type { Path } from './error-place.ts'

/** Implements Driver.repairs(). The near names come from the refusal, which knows the fields at its place. */
export function repairs(body: object, { blocked, path, near = [] }: Denied): readonly object[] {
  if (path === undefined) return []
  const bodies = [
    ...near.map((name) => edited(body, path, (value, key) => renamed(value, key, blocked.name, name))),
    ...(blocked.kind === 'column' || blocked.kind === 'operator' ? [withoutOutput(body, path)] : []),
    ...(blocked.kind === 'stage' ? [withoutWrite(body, path)] : []),
  ]
  return bodies.filter((each) => typeof each === 'object' && each !== null)
}

/** The changed key and value. Null if no change is possible. */
type Entry = readonly [key: string | number, value: unknown] | null

/**
 * Returns a copy of the body that is changed at the path. Returns null if the path does not exist, or if two keys would
 * become equal.
 */
function edited(node: unknown, [key, ...rest]: Path, edit: (value: unknown, key: string | number) => Entry): unknown {
  if (key === undefined || typeof node !== 'object' || node === null || !Object.hasOwn(node, key)) return null
  const before: unknown = Reflect.get(node, key)
  const below = rest.length === 0 ? undefined : edited(before, rest, edit)
  const after: Entry = below === undefined ? edit(before, key) : below === null ? null : [key, below]
  if (after === null) return null
  const [name, value] = after
  if (Array.isArray(node)) return node.map((each: unknown, n) => (n === key ? value : each))
  if (name !== key && Object.hasOwn(node, name)) return null
  return Object.fromEntries(Object.entries(node).map((entry) => (entry[0] === key ? [name, value] : entry)))
}

/** Replaces the refused name in the key or, if it is not there, in the value. */
function renamed(value: unknown, key: string | number, from: string, to: string): Entry {
  if (key === from) return [to, value]
  // Inside an $elemMatch, the key is only the end of the refused path.
  const outer = typeof key === 'string' && from.endsWith(`.${key}`) ? from.slice(0, -key.length) : null
  if (outer !== null && to.startsWith(outer)) return [to.slice(outer.length), value]
  const after = swapped(value, from, to)
  return after === value ? null : [key, after]
}

/** Replaces the name in strings, as `$name` or `$$ROOT.name`. Also replaces the key of an operator. */
function swapped(value: unknown, from: string, to: string): unknown {
  if (typeof value === 'string') {
    if (value === from) return to
    const [, sign, rest] = /^(\$|\$\$(?:ROOT|CURRENT)\.)([^$].*)$/s.exec(value) ?? []
    if (sign !== undefined && rest === from) return sign + to
    return from.startsWith('$$') && value.startsWith(`${from}.`) ? to + value.slice(from.length) : value
  }
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    const items = value.map((item) => swapped(item, from, to))
    return items.some((item, n) => item !== value[n]) ? items : value
  }
  const entries = Object.entries(value).map(([key, item]): [string, unknown] => [
    key === from && from.startsWith('$') && !Object.hasOwn(value, to) ? to : key,
    swapped(item, from, to),
  ])
  const isSame = entries.every(([key, item]) => Object.hasOwn(value, key) && Reflect.get(value, key) === item)
  return isSame ? value : Object.fromEntries(entries)
}

/** The fields of these stages decide what the answer contains, or in which order. */
const OUTPUTS: ReadonlySet<string | number | undefined> = new Set(['$project', '$set', '$addFields', '$group', '$sort'])

/** Removes an output field from the innermost stage that contains the refused part. At least one field must stay. */
function withoutOutput(body: object, path: Path): unknown {
  const at = path.findLastIndex((key, n) => typeof path[n - 1] === 'number' && (OUTPUTS.has(key) || key === '$unset'))
  const field = path[at + 1]
  if (at === -1 || field === undefined || (path[at] === '$group' && field === '_id')) return null
  return edited(body, path.slice(0, at + 1), (fields, stage) => {
    if (typeof fields !== 'object' || fields === null) return null
    if (Array.isArray(fields)) return fields.length === 1 ? null : [stage, fields.filter((_, n) => n !== field)]
    const left = Object.entries(fields).filter(([name]) => name !== field)
    return left.length === 0 ? null : [stage, Object.fromEntries(left)]
  })
}

const WRITES: ReadonlySet<string | number | undefined> = new Set(['$out', '$merge'])

/** Removes the last stage if it would write. The query then returns what it would have written. */
function withoutWrite(body: object, [root, at, stage, ...rest]: Path): unknown {
  if (root !== 'pipeline' || !WRITES.has(stage) || rest.length > 0 || at === 0) return null
  return edited(body, [root], (stages, key) =>
    Array.isArray(stages) && at === stages.length - 1 ? [key, stages.slice(0, -1)] : null,
  )
}
