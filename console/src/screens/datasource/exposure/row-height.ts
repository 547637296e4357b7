// The height of a row. Rows are taller on a narrow screen and on touch devices.
import { useSyncExternalStore } from 'react'

const narrow = matchMedia('(width < 720px), (pointer: coarse)')

const subscribe = (listener: () => void) => {
  narrow.addEventListener('change', listener)
  return () => narrow.removeEventListener('change', listener)
}

export const useRowHeight = () => useSyncExternalStore(subscribe, () => (narrow.matches ? 48 : 32))
