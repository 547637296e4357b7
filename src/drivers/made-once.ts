// Caches a value computed from an object for as long as the object lives. Drivers use it for the look-up of an exposed
// catalog, which stays the same object while nothing changes.

/** If `make` throws, the next call calls `make` again. */
export function madeOnce<K extends object, V>(make: (of: K) => V): (of: K) => V {
  const made = new WeakMap<K, V>()
  return (of) => {
    const known = made.get(of)
    if (known !== undefined) return known
    const value = make(of)
    made.set(of, value)
    return value
  }
}
