// Matches names against patterns with stars, without regular expressions, so that no pattern can be slow.

type Matcher = (schema: string, table: string, column: string) => boolean

/**
 * Returns a matcher for a list of patterns. `*_id` matches columns of any table, `orders.*` the columns of a table, and
 * `public.orders.*` the columns of a table in a schema. Case does not matter. Without a pattern, all columns match.
 */
export function matcherOf(patterns: string): Matcher {
  const each = patterns
    .toLowerCase()
    .split(',')
    .map((pattern) => pattern.trim())
    .filter((pattern) => pattern !== '')
  if (each.length === 0) return () => true
  return (schema, table, column) => {
    const full = [schema, table, column].map((name) => name.toLowerCase())
    return each.some((pattern) => {
      const dots = pattern.split('.').length - 1
      return isLike(pattern, full.slice(Math.max(0, 2 - dots)).join('.'))
    })
  }
}

/** Returns true if the text matches the pattern. Takes linear time for each star. */
function isLike(pattern: string, text: string): boolean {
  const [first = '', ...rest] = pattern.split('*')
  if (rest.length === 0) return text === pattern
  const last = rest.pop() ?? ''
  if (!text.startsWith(first) || !text.endsWith(last) || text.length < first.length + last.length) return false
  let at = first.length
  const end = text.length - last.length
  for (const part of rest) {
    const found = text.indexOf(part, at)
    if (found < 0 || found + part.length > end) return false
    at = found + part.length
  }
  return true
}
