// Stores input that a person has not saved yet in this tab, so that a reload does not lose it. Never stores a secret.
// Storage may be disabled or full; then the input lasts as long as the page.

const place = (name: string) => `vitrine.${name}`

/** Null if nothing is stored. The caller validates the value. */
export function readKept(name: string): unknown {
  try {
    return JSON.parse(sessionStorage.getItem(place(name)) ?? 'null')
  } catch {
    return null
  }
}

/** `null` deletes the stored value. */
export function keep(name: string, value: object | null): void {
  try {
    if (value === null) sessionStorage.removeItem(place(name))
    else sessionStorage.setItem(place(name), JSON.stringify(value))
  } catch {
    // The input stays on the page.
  }
}
