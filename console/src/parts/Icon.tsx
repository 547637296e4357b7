// A decorative icon, hidden from assistive technology: a text or an accessible name beside it tells the meaning.
import type { LucideIcon } from 'lucide-react'

export function Icon({ of: Shape }: { readonly of: LucideIcon }) {
  return <Shape className="icon" aria-hidden strokeWidth={1.75} />
}
