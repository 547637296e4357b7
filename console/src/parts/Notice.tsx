// A notice about a part of the page: a failed save, a warning, a fact.
import { AlertCircle, AlertTriangle, CheckCircle2, Info } from 'lucide-react'
import type { ReactNode } from 'react'
import { Refused, sentenceOf } from '../api/failure.ts'
import { classes } from './class-names.ts'
import { Icon } from './Icon.tsx'

const ICONS = { none: Info, ok: CheckCircle2, warn: AlertTriangle, bad: AlertCircle }

/** `bad` interrupts a screen reader, because the person is waiting for the outcome. */
export function Notice({
  tone = 'none',
  role,
  children,
}: {
  readonly tone?: keyof typeof ICONS
  readonly role?: 'note' | 'status' | 'alert'
  readonly children: ReactNode
}) {
  return (
    <div className={classes('notice', tone !== 'none' && tone)} role={role ?? (tone === 'bad' ? 'alert' : undefined)}>
      <Icon of={ICONS[tone]} />
      <div>{children}</div>
    </div>
  )
}

/** Shows why a call failed. Shows nothing if there is no error. */
export function Failure({ of }: { readonly of: unknown }) {
  if (of === null || of === undefined) return null
  const requestId = of instanceof Refused ? of.requestId : null
  return (
    <Notice tone="bad">
      {sentenceOf(of)}
      {requestId !== null && <div className="tiny">Request {requestId}</div>}
    </Notice>
  )
}
