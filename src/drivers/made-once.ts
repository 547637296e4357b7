// What is made of an object the first time it is asked for, and let go with it: a driver's look-up of an exposed catalog,
// which stays the same object while nothing changed.

/** A `make` that throws is called again the next time. */
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
