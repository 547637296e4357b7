// An empty state: what is missing, why it matters, and how to continue.
import type { LucideIcon } from 'lucide-react'
import type { ReactNode } from 'react'
import { Icon } from './Icon.tsx'

export function Empty({
  icon,
  title,
  children,
  acts,
}: {
  readonly icon: LucideIcon
  readonly title: string
  readonly children?: ReactNode
  readonly acts?: ReactNode
}) {
  return (
    <div className="empty">
      <span className="empty-picture">
        <Icon of={icon} />
      </span>
      <h2>{title}</h2>
      {children !== undefined && <p>{children}</p>}
      {acts !== undefined && <div className="empty-acts">{acts}</div>}
    </div>
  )
}
