// Shows the smallest change that would allow a refused query. Directly after the save, the query is checked again,
// without running it.
import { useQuery } from '@tanstack/react-query'
import { useEffect } from 'react'
import { call } from '../../../api/client.ts'
import { sentenceOf } from '../../../api/failure.ts'
import { useCall, useRead } from '../../../api/queries.ts'
import type { Answer } from '../../../api/types.ts'
import { Loading } from '../../../parts/LoadState.tsx'
import { Notice } from '../../../parts/Notice.tsx'
import { State } from '../../../parts/Tag.tsx'
import { counted } from '../../../parts/format.ts'
import { LongText, Name } from '../../../parts/UntrustedText.tsx'
import { useDatasource } from '../Datasource.tsx'
import { columnCount, type TableNames } from './choice.ts'

export interface Proposal {
  readonly auditId: string
  readonly added: readonly TableNames[]
  readonly note: string
  /** The version that the proposal extends. */
  readonly version: number
}

interface FromRefusalProps {
  readonly auditId: string
  readonly savedVersion: number
  readonly known: Proposal | null
  readonly onProposal: (proposal: Proposal) => void
}

export function FromRefusal({ auditId, savedVersion, known, onProposal }: FromRefusalProps) {
  const { teamId, id } = useDatasource()
  const asked = known?.auditId === auditId ? known : null
  const item = useRead('getAuditItem', { params: { teamId, auditId } })
  const proposal = useQuery({
    queryKey: ['exposureFromRefusal', teamId, id, auditId],
    enabled: asked === null,
    staleTime: Infinity,
    gcTime: 0,
    retry: false,
    queryFn: ({ signal }) => call('exposureFromRefusal', { params: { teamId, id, auditId } }, signal),
  })
  const found = proposal.data
  useEffect(() => {
    if (asked !== null || found === undefined || item.data === undefined) return
    const { blocked } = item.data
    const what = blocked === undefined ? 'a query' : `${blocked.kind} ${blocked.name}`
    onProposal({
      auditId,
      added: found.added,
      version: found.version,
      note: `From the refusal of ${what}`.slice(0, 200),
    })
  })
  const isSaved = asked !== null && savedVersion > asked.version
  const requests = useRead('listRequests', { params: { teamId }, query: { state: 'OPEN' } }).data ?? []
  const waiting = requests.filter((request) => request.auditId === auditId)
  if (item.data === undefined && item.error === null) return <Loading what="refusal" lines={2} />
  return (
    <section className="refusal" aria-label="Refused query">
      <header className="row">
        <h2>Refused query</h2>
        {isSaved && <CheckedAgain text={item.data?.query} savedVersion={savedVersion} waiting={waiting} />}
      </header>
      {item.data?.query !== undefined && (
        <code>
          <LongText>{item.data.query}</LongText>
        </code>
      )}
      {waiting.map(({ id: request, name, why }) => (
        <p key={request}>
          <Name>{name}</Name> asks for it: <LongText>{why}</LongText>
        </p>
      ))}
      {item.data?.error !== undefined && !isSaved && <p className="soft">{item.data.error}</p>}
      {proposal.error !== null && asked === null && <Notice tone="warn">{sentenceOf(proposal.error)}</Notice>}
      {asked !== null && !isSaved && (
        <p>
          {asked.added.length === 0
            ? 'No change is needed: the exposure already allows this query.'
            : `The smallest change that allows the query is ticked: ${counted(columnCount(asked.added), 'column')}. Review it, then save.`}
        </p>
      )}
    </section>
  )
}

interface CheckedProps {
  /** The query as the audit stores it: SQL, or the JSON of a MongoDB body. */
  readonly text: string | undefined
  readonly savedVersion: number
  /** The open requests for this refusal. They are closed if the query is now allowed. */
  readonly waiting: Answer<'listRequests'>
}

function CheckedAgain({ text, savedVersion, waiting }: CheckedProps) {
  const { teamId, id, type } = useDatasource()
  const check = useQuery({
    queryKey: ['checkAfterSave', teamId, id, text, savedVersion],
    enabled: text !== undefined,
    staleTime: Infinity,
    queryFn: ({ signal }) => {
      const body = type === 'MONGODB' ? JSON.parse(text ?? '{}') : { sql: text ?? '' }
      return call('checkQuery', { params: { teamId, id }, body }, signal)
    },
  })
  const passes = check.data?.verdict === 'ALLOWED'
  const close = useCall('closeRequest')
  useEffect(() => {
    if (!passes || !close.isIdle) return
    for (const { id: requestId } of waiting)
      close.mutate({ params: { teamId, requestId }, body: { resolution: 'EXPOSED' } })
  }, [passes, waiting, close, teamId])
  if (check.data === undefined) return null
  if (passes)
    return (
      <span className="row" role="status">
        <State of="ANSWERED" />
        <span className="tiny">
          It would be answered now.{close.isSuccess && ' The request is closed.'}
          {close.isError && ` The request could not be closed. ${sentenceOf(close.error)}`}
        </span>
      </span>
    )
  return <Notice tone="warn">{check.data.error ?? 'It would still be refused.'}</Notice>
}
