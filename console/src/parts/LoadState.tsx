// Shows the state of a page while a read runs, and after it failed. For an object that does not exist, shows the page
// “Nothing here”.
import type { UseQueryResult } from '@tanstack/react-query'
import { Link, notFound } from '@tanstack/react-router'
import { RotateCw } from 'lucide-react'
import type { ReactNode } from 'react'
import { isCode, isStatus, Refused, sentenceOf } from '../api/failure.ts'
import { Button } from './Button.tsx'
import { Notice } from './Notice.tsx'

interface LoadStateProps<T> {
  readonly of: Pick<UseQueryResult<T>, 'data' | 'error' | 'refetch' | 'isFetching'>
  /** The name of what is loaded, such as `members`. */
  readonly what: string
  readonly lines?: number
  readonly children: (data: T) => ReactNode
}

export function LoadState<T>({ of, what, lines = 4, children }: LoadStateProps<T>): ReactNode {
  if (of.data !== undefined) return children(of.data)
  if (of.error === null) return <Loading what={what} lines={lines} />
  if (isStatus(of.error, 404)) throw notFound()
  return <LoadFailed what={what} error={of.error} busy={of.isFetching} onRetry={() => void of.refetch()} />
}

export function Loading({ what, lines = 4 }: { readonly what: string; readonly lines?: number }) {
  return (
    <div role="status">
      <span className="hidden-words">Loading {what}</span>
      <div className="skeleton" aria-hidden>
        {Array.from({ length: lines }, (_, n) => (
          <span key={n} style={{ width: `${[92, 78, 85, 64][n % 4] ?? 80}%` }} />
        ))}
      </div>
    </div>
  )
}

interface FailedProps {
  readonly what: string
  readonly error: unknown
  readonly busy?: boolean
  readonly onRetry: () => void
}

export function LoadFailed({ what, error, busy = false, onRetry }: FailedProps) {
  const requestId = error instanceof Refused ? error.requestId : null
  return (
    <div className="stack close">
      <Notice tone="bad">
        The {what} could not be loaded. {sentenceOf(error)}
        {isCode(error, 'SECOND_FACTOR_REQUIRED') && (
          <>
            {' '}
            <Link to="/settings/security">Turn on two-factor</Link>
          </>
        )}
        {requestId !== null && <div className="tiny">Request {requestId}</div>}
      </Notice>
      <div>
        <Button icon={RotateCw} busy={busy} onClick={onRetry}>
          Try again
        </Button>
      </div>
    </div>
  )
}
