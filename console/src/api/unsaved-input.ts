// What a person typed and did not save, kept in this tab so that a reload does not lose it. Never holds a secret. Storage
// may be disabled or full; then it lasts as long as the page.

const place = (name: string) => `vitrine.${name}`

/** Null if nothing is kept. Whoever reads it checks its shape. */
export function readKept(name: string): unknown {
  try {
    return JSON.parse(sessionStorage.getItem(place(name)) ?? 'null')
  } catch {
    return null
  }
}

/** `null` keeps nothing any more. */
export function keep(name: string, value: object | null): void {
  try {
    if (value === null) sessionStorage.removeItem(place(name))
    else sessionStorage.setItem(place(name), JSON.stringify(value))
  } catch {
    // It stays on the page.
  }
}
