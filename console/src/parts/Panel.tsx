// A box on a page. The box is a region, and its title is the name of the region.
import type { ReactNode } from 'react'

export function Panel({
  title,
  lead,
  acts,
  danger = false,
  children,
}: {
  readonly title: string
  readonly lead?: ReactNode
  readonly acts?: ReactNode
  readonly danger?: boolean
  readonly children: ReactNode
}) {
  return (
    <section className={danger ? 'panel danger' : 'panel'} aria-label={title}>
      <header>
        <h2>{title}</h2>
        {acts}
        {lead !== undefined && <p>{lead}</p>}
      </header>
      <div className="panel-body">{children}</div>
    </section>
  )
}
