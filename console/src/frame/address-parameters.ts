// Reads the query parameters of an address as optional strings. Unknown parameters are dropped.
export type Search<N extends string> = { [K in N]?: string }

/**
 * Returns a function for `validateSearch`. It turns values that the router parsed, such as `1` and `true`, back into
 * strings.
 */
export function texts<const N extends string>(...names: readonly N[]) {
  return (search: Readonly<Record<string, unknown>>): Search<N> => {
    const found: Search<N> = {}
    for (const name of names) {
      const value = search[name]
      if (typeof value === 'string') found[name] = value
      else if (typeof value === 'number' || typeof value === 'boolean') found[name] = String(value)
    }
    return found
  }
}
