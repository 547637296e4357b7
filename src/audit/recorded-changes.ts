// Builds what the audit stores about a change: the name of the changed object, and the old and new value of each
// changed field. For a secret, callers must pass `SET` or `NOT_SET` instead of the value.
import { z } from 'zod'
import type { Target as TargetSchema } from '../contract/audit-schemas.ts'

export type Target = z.infer<typeof TargetSchema>

const Scalar = z.union([z.string(), z.number(), z.boolean(), z.null()])
const Value = z.union([Scalar, z.array(z.string())])
const Moved = z.object({ from: Value, to: Value })
/** `changed` contains items that are in both lists but differ. A count is present only if its list was truncated. */
const Listed = z.object({
  added: z.array(z.string()),
  removed: z.array(z.string()),
  changed: z.array(z.string()).optional(),
  addedCount: z.number().optional(),
  removedCount: z.number().optional(),
  changedCount: z.number().optional(),
})
export const Changes = z.record(z.string(), z.union([Moved, Listed]))
export type Changes = z.infer<typeof Changes>

export interface Changed {
  readonly target: Target
  readonly changes?: Changes
}

export type Fields = Readonly<Record<string, FieldValue>>
type FieldValue = string | number | boolean | null | undefined | readonly string[]

/** Stand for secrets, which are never stored. */
export const SET = 'set'
export const NOT_SET = 'not set'

const NAMES_MAX = 50
/** The maximum length of a name or value, in UTF-16 code units. */
const CHARS_MAX = 200

/** `before` is null for a new object, and `after` is null for a deleted one. */
export function changesOf(before: Fields | null, after: Fields | null): Changes {
  const changes: Changes = {}
  for (const name of new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])) {
    const [from, to] = [before?.[name] ?? null, after?.[name] ?? null]
    if (isList(from ?? to) && isList(to ?? from)) {
      const listed = listedOf(asList(from), asList(to))
      if (listed.added.length + listed.removed.length > 0) changes[name] = listed
    } else if (JSON.stringify(from) !== JSON.stringify(to)) changes[name] = { from: shown(from), to: shown(to) }
  }
  return changes
}

/** Returns the added and removed names. `changed` has the names of items that are in both lists but differ. */
export function listedOf(
  before: readonly string[],
  after: readonly string[],
  changed: readonly string[] = [],
): z.infer<typeof Listed> {
  const [was, is] = [new Set(before), new Set(after)]
  const added = [...is].filter((name) => !was.has(name))
  const removed = [...was].filter((name) => !is.has(name))
  return {
    added: cut(added),
    removed: cut(removed),
    ...(changed.length > 0 && { changed: cut(changed) }),
    ...(added.length > NAMES_MAX && { addedCount: added.length }),
    ...(removed.length > NAMES_MAX && { removedCount: removed.length }),
    ...(changed.length > NAMES_MAX && { changedCount: changed.length }),
  }
}

/** Flattens nested objects: {a: {b: 1}} becomes {'prefix.a.b': 1}. */
export function flattened(prefix: string, value: unknown): Fields {
  if (typeof value !== 'object' || value === null) return { [prefix]: scalarOf(value) }
  if (Array.isArray(value)) return { [prefix]: value.map((item) => String(scalarOf(item))) }
  return Object.assign({}, ...Object.entries(value).map(([name, inner]) => flattened(`${prefix}.${name}`, inner)))
}

/** Returns for example `public.orders.total`. Names with special characters are quoted, so the path is unambiguous. */
export function pathName(...names: readonly string[]): string {
  return names.map((name) => (/^[\p{L}_][\p{L}\p{N}_$]*$/u.test(name) ? name : JSON.stringify(name))).join('.')
}

function scalarOf(value: unknown): string | number | boolean | null {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return value
  return value === null || value === undefined ? null : JSON.stringify(value)
}

function isList(value: FieldValue): value is readonly string[] {
  return Array.isArray(value)
}

function asList(value: FieldValue): readonly string[] {
  return isList(value) ? value : []
}

function shown(value: string | number | boolean | null | readonly string[]): z.infer<typeof Value> {
  if (typeof value === 'string') return short(value)
  return isList(value) ? cut(value) : value
}

function cut(names: readonly string[]): string[] {
  return names.slice(0, NAMES_MAX).map(short)
}

function short(text: string): string {
  return text.length > CHARS_MAX ? `${text.slice(0, CHARS_MAX).toWellFormed()}…` : text
}
