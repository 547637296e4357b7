// Stores small values in this browser: theme, shortcuts, last team, and the time of a sign-out. If storage is disabled,
// a value lasts as long as the page. Secrets are never stored.
import { observable, useObservable } from './observable.ts'

type Name = 'theme' | 'shortcuts' | 'team' | 'signed-out'

const memory = observable<Readonly<Record<string, string>>>({})

export function remembered(name: Name): string | null {
  const here = memory.get()[name]
  if (here !== undefined) return here
  try {
    return localStorage.getItem(`vitrine.${name}`)
  } catch {
    return null
  }
}

export function remember(name: Name, value: string): void {
  memory.set({ ...memory.get(), [name]: value })
  try {
    localStorage.setItem(`vitrine.${name}`, value)
  } catch {
    // The value stays in memory.
  }
}

export function useRemembered(name: Name): string | null {
  useObservable(memory)
  return remembered(name)
}
