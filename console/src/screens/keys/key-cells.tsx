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

/** Shows the expiry. Marks keys that expire soon, and keys that never expire, which are a risk. */
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
