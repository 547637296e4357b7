// An icon beside words. It never carries meaning alone, so it is hidden from assistive technology.
import type { LucideIcon } from 'lucide-react'

export function Icon({ of: Shape }: { readonly of: LucideIcon }) {
  return <Shape className="icon" aria-hidden strokeWidth={1.75} />
}
