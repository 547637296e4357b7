// Keyboard shortcuts for every page. Shortcuts without a modifier key can be switched off (WCAG 2.1.4). They have no
// effect while somebody types, or while a dialog or menu is open. If a component handles a key itself and prevents the
// default, the shortcut does not run.
import { useEffect } from 'react'
import { remember, remembered, useRemembered } from '../api/browser-settings.ts'

export const useShortcuts = () => useRemembered('shortcuts') !== 'off'
export const setShortcuts = (on: boolean) => remember('shortcuts', on ? 'on' : 'off')

/** The second keys of shortcuts such as `g d`. */
export type Place = 'd' | 'p' | 'a' | 'm' | 'k' | 'h' | 's'

export interface KeyActions {
  openPalette(): void
  openHelp(): void
  go(place: Place): void
}

const PLACES = new Map<string, Place>((['d', 'p', 'a', 'm', 'k', 'h', 's'] as const).map((place) => [place, place]))
/** The maximum time between the two keys of a shortcut such as `g d`. */
const SEQUENCE_MS = 1_500

export const isMac = /Mac|iPhone|iPad/.test(navigator.platform)
/** The name of the main modifier key on this machine. */
export const MOD = isMac ? '⌘' : 'Ctrl'

export function useKeys(actions: KeyActions): void {
  useEffect(() => {
    let gAt = 0
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.isComposing) return
      const mod = isMac ? event.metaKey : event.ctrlKey
      if (mod && !event.altKey && !event.shiftKey && event.key.toLowerCase() === 'k') {
        event.preventDefault()
        return actions.openPalette()
      }
      if (event.metaKey || event.ctrlKey || event.altKey || remembered('shortcuts') === 'off' || isBusy(event)) return
      const place = performance.now() - gAt < SEQUENCE_MS ? PLACES.get(event.key) : undefined
      gAt = event.key === 'g' ? performance.now() : 0
      if (place !== undefined) actions.go(place)
      else if (event.key === '?') actions.openHelp()
      else if (event.key !== '/' || !focusFilter()) return
      event.preventDefault()
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [actions])
}

/** Returns true if somebody types, or a dialog or menu has the keyboard. */
function isBusy(event: KeyboardEvent): boolean {
  const [target] = event.composedPath()
  if (!(target instanceof Element)) return false
  return (
    target.closest('input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable=true]') !== null ||
    target.closest('[role=dialog], [role=alertdialog], [role=menu], [role=listbox]') !== null
  )
}

/** Focuses the filter field of the page, which has the attribute `data-filter`. Returns false if there is none. */
function focusFilter(): boolean {
  const filter = document.querySelector<HTMLElement>('[data-filter]')
  filter?.focus()
  return filter !== null
}
