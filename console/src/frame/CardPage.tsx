// A page without the frame: one card in the middle. For signing in, for creating or joining a team, and for failures.
import type { ReactNode } from 'react'
import { classes } from '../parts/class-names.ts'
import { Mark } from '../parts/Mark.tsx'
import { useTitle } from './page-title.ts'

interface CardPageProps {
  readonly title: string
  readonly lead?: ReactNode
  readonly wide?: boolean
  readonly children?: ReactNode
}

export function CardPage({ title, lead, wide = false, children }: CardPageProps) {
  useTitle(title, null)
  return (
    <main className="outside" id="content" tabIndex={-1}>
      <div className={classes('outside-card', wide && 'wide')}>
        <div className="outside-head">
          <Mark />
          <h1 tabIndex={-1}>{title}</h1>
          {lead !== undefined && <p>{lead}</p>}
        </div>
        {children}
      </div>
    </main>
  )
}
