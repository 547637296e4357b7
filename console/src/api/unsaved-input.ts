// Stores unsaved input, so that a reload of this tab does not lose it. Never stores a secret. If storage is disabled or
// full, the input lasts as long as the page.

const place = (name: string) => `vitrine.${name}`

/** Returns the stored value, or null. The caller must validate the value. */
export function readKept(name: string): unknown {
  try {
    return JSON.parse(sessionStorage.getItem(place(name)) ?? 'null')
  } catch {
    return null
  }
}

/** Stores a value. `null` deletes the stored value. */
export function keep(name: string, value: object | null): void {
  try {
    if (value === null) sessionStorage.removeItem(place(name))
    else sessionStorage.setItem(place(name), JSON.stringify(value))
  } catch {
    // The input stays on the page.
  }
}
