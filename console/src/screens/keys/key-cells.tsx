// Cells that keys and grants share.
import { AlertTriangle } from 'lucide-react'
import { Tag } from '../../parts/Tag.tsx'
import { ago, exact } from '../../parts/format.ts'
import { Time } from '../../parts/Time.tsx'

interface Used {
  readonly lastUsedAt: string | null
  readonly lastClient?: string | undefined
}

export function LastUse({ of: { lastUsedAt, lastClient } }: { readonly of: Used }) {
  if (lastUsedAt === null) return <span className="tiny">never</span>
  return (
    <span className="person-words">
      <Time at={lastUsedAt} />
      {lastClient !== undefined && <bdi className="tiny cut">{lastClient}</bdi>}
    </span>
  )
}

/** Shows the expiry. Marks a key that expires soon, and one that never expires, because such a key is a risk. */
export function Expiry({
  of: { expiresAt, expiring },
}: {
  readonly of: { readonly expiresAt: string | null; readonly expiring: boolean }
}) {
  if (expiresAt === null)
    return (
      <Tag tone="warn" icon={AlertTriangle} bare>
        never
      </Tag>
    )
  const time = (
    <time dateTime={expiresAt} title={exact(expiresAt)}>
      {ago(expiresAt)}
    </time>
  )
  return expiring ? <Tag tone="warn">{time}</Tag> : time
}
