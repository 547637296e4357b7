// Removes the values from a body or a printed query (JSON), for an audit that must not store values. The names of
// fields, operators and the collection stay. All strings are removed, because a string may be a literal.

/** The values of these top-level keys are names, so they stay. */
const NAMED = new Set(['collection', 'aggregate', 'find'])
/** Any other key may be data. */
const PLAIN_NAME = /^[\w$.-]{1,200}$/
/** The guard refuses bodies of far smaller depth. */
const DEPTH_MAX = 600

/** Replaces each value by "?". Returns null if the text is no JSON object, or is nested too deeply. */
export function redactedJson(text: string): string | null {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return null
  }
  return isObject(value) ? written(value, 0) : null
}

function written(value: unknown, depth: number): string | null {
  if (depth > DEPTH_MAX) return null
  if (Array.isArray(value)) {
    // A list of scalars becomes a single "?", because the number of elements would tell something about the values.
    if (value.every((each) => typeof each !== 'object' || each === null)) return value.length === 0 ? '[]' : '["?"]'
    return joined(
      value.map((each) => written(each, depth + 1)),
      '[',
      ']',
    )
  }
  if (!isObject(value)) return '"?"'
  const fields = Object.entries(value).map(([name, below]) => {
    const isName = depth === 0 && NAMED.has(name) && typeof below === 'string' && PLAIN_NAME.test(below)
    const kept = isName ? JSON.stringify(below) : written(below, depth + 1)
    return kept === null ? null : `${JSON.stringify(PLAIN_NAME.test(name) ? name : '?')}:${kept}`
  })
  return joined(fields, '{', '}')
}

function joined(parts: readonly (string | null)[], open: string, close: string): string | null {
  return parts.includes(null) ? null : `${open}${parts.join(',')}${close}`
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
