// Lists that may have thousands of elements. z.array() reads such a list to the end even after an error, and creates an
// object for each problem. With many problems, this takes longer than all other work on a body.
import { z, type ZodType } from 'zod'

/** Parsing stops after a part of this many elements that had a problem. */
const PART = 32

/** An option for parsers. Otherwise, the message would list all unknown keys, which takes long for 30,000 keys. */
export const BRIEF = {
  error: (issue: z.core.$ZodRawIssue): string | undefined =>
    issue.code === 'unrecognized_keys' ? 'unknown keys' : undefined,
}

/** Returns a schema for an array of limited length. Parsing stops after the first part that has a problem. */
export function listOf<V extends ZodType>(item: V, most: number, least = 0) {
  const part = z.array(item)
  return z
    .unknown()
    .transform((it, ctx): readonly z.output<V>[] => {
      if (!Array.isArray(it)) {
        ctx.issues.push({ code: 'invalid_type', expected: 'array', input: it })
        return []
      }
      if (it.length > most) {
        ctx.issues.push({ code: 'too_big', origin: 'array', maximum: most, inclusive: true, input: it })
        return []
      }
      if (it.length < least) {
        ctx.issues.push({ code: 'too_small', origin: 'array', minimum: least, inclusive: true, input: it })
        return []
      }
      const read: z.output<V>[] = []
      for (let from = 0; from < it.length; from += PART) {
        const { data, error } = part.safeParse(it.slice(from, from + PART), BRIEF)
        if (data === undefined) {
          ctx.issues.push(...moved(error.issues, from))
          break
        }
        for (const element of data) read.push(element)
      }
      return read
    })
    .meta({
      ...z.toJSONSchema(least === 0 ? part.max(most) : part.min(least).max(most), {
        io: 'input',
        unrepresentable: 'any',
      }),
    })
}

/** Each part numbers its elements from 0. Adds `from` to get the positions in the whole list. */
function moved(issues: readonly z.core.$ZodIssue[], from: number): z.core.$ZodRawIssue[] {
  return issues.map((issue) => {
    const [n, ...rest] = issue.path
    const at = { path: [typeof n === 'number' ? n + from : '', ...rest], input: undefined }
    if (issue.code === 'unrecognized_keys') return { code: issue.code, keys: issue.keys, ...at }
    return { code: 'custom', message: issue.message, ...at }
  })
}
