// Objects whose keys are database names. `__proto__` and `constructor` are valid names, so keys are read into a Map.
// z.record would drop `__proto__`.
import { z, type ZodType } from 'zod'
import { BRIEF } from './long-lists.ts'

const ISSUES_ENOUGH = 50

/** Returns a schema that reads an object into a Map. `most` is the maximum number of names. */
export function byName<V extends ZodType>(
  value: V,
  { name = z.string(), most = Infinity }: { readonly name?: ZodType<string>; readonly most?: number } = {},
) {
  return z
    .unknown()
    .transform((it, ctx): ReadonlyMap<string, z.output<V>> => {
      const read = new Map<string, z.output<V>>()
      const entries = entriesOf(it)
      if (entries === null) ctx.issues.push({ code: 'invalid_type', expected: 'record', input: it })
      if (entries !== null && entries.length > most) {
        ctx.issues.push({ code: 'custom', message: `must not have more than ${most} names`, input: it })
        return read
      }
      for (const [key, item] of entries ?? []) {
        if (ctx.issues.length >= ISSUES_ENOUGH) break
        const [of, result] = [name.safeParse(key), value.safeParse(item, BRIEF)]
        for (const { error } of [of, result]) {
          for (const issue of error?.issues ?? []) {
            const at = { path: [key, ...issue.path], input: undefined }
            if (issue.code === 'unrecognized_keys') ctx.issues.push({ code: issue.code, keys: issue.keys, ...at })
            else ctx.issues.push({ code: 'custom', message: issue.message, ...at })
          }
        }
        if (of.success && result.success) read.set(of.data, result.data)
      }
      return read
    })
    .meta({ ...asRecord(value, name), ...(most < Infinity && { maxProperties: most }) })
}

/** Returns a schema that writes a Map as an object. */
export function toNames<V extends ZodType>(value: V) {
  return z
    .custom<ReadonlyMap<string, z.input<V>>>((it) => entriesOf(it) !== null)
    .transform((it) =>
      // fromEntries() creates own properties, even for `__proto__`.
      Object.fromEntries((entriesOf(it) ?? []).map(([name, item]) => [name, value.parse(item)])),
    )
    .meta(asRecord(value, z.string()))
}

export function jsonOf(value: unknown): string {
  return JSON.stringify(value, (_, item: unknown) => (item instanceof Map ? Object.fromEntries(item) : item))
}

function entriesOf(it: unknown): readonly (readonly [string, unknown])[] | null {
  if (it instanceof Map) return [...it].filter((entry): entry is [string, unknown] => typeof entry[0] === 'string')
  return typeof it === 'object' && it !== null && !Array.isArray(it) ? Object.entries(it) : null
}

function asRecord(value: ZodType, name: ZodType<string>): Record<string, unknown> {
  return { ...z.toJSONSchema(z.record(name, value), { io: 'input', unrepresentable: 'any' }) }
}
