// Shows the impact of a proposed exposure on the queries of the last days: one line, and the affected queries.
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { call } from '../../../api/client.ts'
import { sentenceOf } from '../../../api/failure.ts'
import type { AuditItem } from '../../../api/types.ts'
import { Button } from '../../../parts/Button.tsx'
import { LoadFailed, Loading } from '../../../parts/LoadState.tsx'
import { Notice } from '../../../parts/Notice.tsx'
import { ago, counted, number } from '../../../parts/format.ts'
import { IMPACT_DAYS, ReplayEnded, type Impact, type ImpactState } from './usePreview.ts'

/** Shows the short form, for the bar of unsaved changes. */
export function ImpactLine({ is }: { readonly is: ImpactState | null }) {
  if (is === null || is.state === 'failed') return null
  if (is.state === 'replaying') return <span className="soft">Replaying the last {IMPACT_DAYS} days…</span>
  const words = wordsOf(is.impact)
  return (
    <span className="soft">
      Last {IMPACT_DAYS} days: {words.length === 0 ? 'no query is affected' : words.join(', ')}
    </span>
  )
}

function wordsOf({ nowAllowed, nowRefused, cannotTell }: Impact): string[] {
  const words: string[] = []
  if (nowAllowed.count > 0) words.push(`${counted(nowAllowed.count, 'refused query', 'refused queries')} would pass`)
  if (nowRefused.count > 0)
    words.push(`${counted(nowRefused.count, 'answered query', 'answered queries')} would be refused`)
  if (cannotTell.count > 0) words.push(`${number(cannotTell.count)} cannot be judged`)
  return words
}

/** Shows the long form, for the dialog. */
export function ImpactRegion({ teamId, is }: { readonly teamId: string; readonly is: ImpactState | null }) {
  return (
    <section className="impact" aria-label="Impact" role="region">
      <h3>Impact on the last {IMPACT_DAYS} days</h3>
      {is === null || is.state === 'replaying' ? (
        <p className="soft" role="status">
          Replaying audited queries{is !== null && is.total > 0 && `, ${number(is.done)} of ${number(is.total)}`}…
        </p>
      ) : is.state === 'failed' ? (
        <Notice tone="warn" role="note">
          The impact could not be computed. {is.error instanceof ReplayEnded ? is.error.message : sentenceOf(is.error)}
        </Notice>
      ) : (
        <Outcome teamId={teamId} impact={is.impact} />
      )}
    </section>
  )
}

function Outcome({ teamId, impact }: { readonly teamId: string; readonly impact: Impact }) {
  const { nowAllowed, nowRefused, cannotTell } = impact
  if (wordsOf(impact).length === 0) return <p className="soft">No query of these days is affected.</p>
  return (
    <ul className="stack close">
      <Queries teamId={teamId} of={nowRefused} words={plural(nowRefused.count, 'would be refused', 'answered')} />
      <Queries teamId={teamId} of={nowAllowed} words={plural(nowAllowed.count, 'would pass', 'refused')} />
      <Queries
        teamId={teamId}
        of={cannotTell}
        words={`${counted(cannotTell.count, 'query', 'queries')} cannot be judged, because the audit has no full text or the text can no longer be read`}
      />
    </ul>
  )
}

const plural = (n: number, does: string, were: string) => `${counted(n, `${were} query`, `${were} queries`)} ${does}`

interface QueriesProps {
  readonly teamId: string
  readonly of: Impact['nowAllowed']
  readonly words: string
}

/** The maximum number of queries in the dialog for each outcome. */
const SHOWN = 10

function Queries({ teamId, of, words }: QueriesProps) {
  const [open, setOpen] = useState(false)
  if (of.count === 0) return null
  return (
    <li>
      <span className="row">
        {words}
        {of.auditIds.length > 0 && (
          <Button small look="quiet" aria-expanded={open} onClick={() => setOpen(!open)}>
            {open ? 'Hide them' : 'See them'}
          </Button>
        )}
      </span>
      {open && <Texts teamId={teamId} ids={of.auditIds.slice(0, SHOWN)} />}
    </li>
  )
}

function Texts({ teamId, ids }: { readonly teamId: string; readonly ids: readonly string[] }) {
  const items = useQuery({
    queryKey: ['impact', teamId, ids],
    staleTime: Infinity,
    queryFn: ({ signal }) =>
      Promise.all(ids.map((auditId) => call('getAuditItem', { params: { teamId, auditId } }, signal))),
  })
  if (items.error !== null)
    return <LoadFailed what="queries" error={items.error} onRetry={() => void items.refetch()} />
  if (items.data === undefined) return <Loading what="queries" lines={2} />
  return (
    <ul className="impact-queries">
      {items.data.map((item) => (
        <li key={item.id}>
          <code>
            <bdi>{item.query ?? 'The audit has no text of this query.'}</bdi>
          </code>
          <span className="tiny">
            <bdi>{whoOf(item)}</bdi> · {ago(item.at)}
          </span>
        </li>
      ))}
    </ul>
  )
}

const whoOf = ({ keyName, grantName, actor }: AuditItem) => keyName ?? grantName ?? actor.name ?? 'somebody'
