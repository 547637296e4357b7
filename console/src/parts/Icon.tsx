// A decorative icon, hidden from assistive technology. A text or an accessible name beside it has the meaning.
import type { LucideIcon } from 'lucide-react'

export function Icon({ of: Shape }: { readonly of: LucideIcon }) {
  return <Shape className="icon" aria-hidden strokeWidth={1.75} />
}
