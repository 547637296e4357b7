// The possible expiries of a key, in days.
export type Expires = '7' | '30' | '90' | '365' | 'never'

export const EXPIRIES: readonly { readonly value: Expires; readonly label: string }[] = [
  { value: '7', label: '7 days' },
  { value: '30', label: '30 days' },
  { value: '90', label: '90 days' },
  { value: '365', label: '1 year' },
  { value: 'never', label: 'Never' },
]

const DAY_MS = 86_400_000

export const expiryAt = (expires: Expires, now = Date.now()): string | null =>
  expires === 'never' ? null : new Date(now + Number(expires) * DAY_MS).toISOString()
