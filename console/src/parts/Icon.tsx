// An icon beside a label. It has no meaning of its own, so it is hidden from assistive technology.
import type { LucideIcon } from 'lucide-react'

export function Icon({ of: Shape }: { readonly of: LucideIcon }) {
  return <Shape className="icon" aria-hidden strokeWidth={1.75} />
}
