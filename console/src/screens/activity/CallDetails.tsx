// One call: the query, the text that was sent to the database, the reason of a refusal, and the possible next steps.
import { Eye, SquareTerminal, X } from 'lucide-react'
import type { ReactNode } from 'react'
import type { AuditItem } from '../../api/types.ts'
import { useTeam } from '../../frame/current-team.ts'
import { IconButton, LinkButton } from '../../parts/Button.tsx'
import { CodeBlock } from '../../parts/CodeBlock.tsx'
import { CopyButton } from '../../parts/Copy.tsx'
import { State } from '../../parts/Tag.tsx'
import { bytes, counted, duration, exact, number } from '../../parts/format.ts'
import { LongText, Name } from '../../parts/UntrustedText.tsx'
import { AskForExposure } from '../requests/AskForExposure.tsx'
import { actionWords, blockedWords, callerWords, isFixable } from './call-words.ts'
import { ChangedFields } from './ChangedFields.tsx'

interface CallDetailsProps {
  readonly item: AuditItem
  readonly own: boolean
  readonly names: ReadonlyMap<string, string>
  readonly onClose: () => void
}

export function CallDetails({ item, own, names, onClose }: CallDetailsProps) {
  const team = useTeam()
  const { datasourceId: id = '', query } = item
  return (
    <section className="panel call" aria-label="Call">
      <header>
        <span className="row">
          <State of={item.outcome} bare={false} />
          <h2>
            {actionWords(item.action)}
            {id !== '' && (
              <>
                {' · '}
                <Name>
                  {names.get(id) ?? (own ? 'a datasource that you do not reach in this team' : 'a deleted datasource')}
                </Name>
              </>
            )}
          </h2>
        </span>
        <span className="row">
          {!own && isFixable(item) && (
            <LinkButton
              small
              look="primary"
              icon={Eye}
              to="/t/$team/datasources/$id/exposure"
              params={{ team: team.slug, id }}
              search={{ from: item.id }}
            >
              Expose from this
            </LinkButton>
          )}
          {own && isFixable(item) && names.has(id) && (
            <AskForExposure at={{ teamId: team.id, id }} refused={() => Promise.resolve(item.id)} />
          )}
          {query !== undefined && names.has(id) && (
            <LinkButton
              small
              icon={SquareTerminal}
              to="/t/$team/playground"
              params={{ team: team.slug }}
              search={{ ds: id, q: query }}
            >
              Open in playground
            </LinkButton>
          )}
          <CopyButton small text={`${location.origin}/app/t/${team.slug}/activity?id=${encodeURIComponent(item.id)}`}>
            Copy link
          </CopyButton>
          <IconButton small icon={X} label="Close the call" onClick={onClose} />
        </span>
        <p>
          <Facts item={item} />
        </p>
      </header>
      <div className="panel-body">
        {item.changes !== undefined && <ChangedFields changes={item.changes} />}
        <div className="columns-2">
          <Part title="Asked">
            {query === undefined ? (
              <p className="soft small">No query: {actionWords(item.action).toLowerCase()}.</p>
            ) : (
              <CodeBlock label="query as asked">{query}</CodeBlock>
            )}
          </Part>
          <Part title="The database saw">
            {item.printed === undefined ? (
              <p className="soft small">No query was sent to the database.</p>
            ) : (
              <CodeBlock label="query as printed">{item.printed}</CodeBlock>
            )}
          </Part>
        </div>
        {item.outcome !== 'ANSWERED' && (
          <Part title="Why">
            <p>
              <LongText>{item.error ?? blockedWords(item)}</LongText>
            </p>
            {item.hint !== undefined && (
              <p className="soft">
                <LongText>{item.hint}</LongText>
              </p>
            )}
          </Part>
        )}
      </div>
    </section>
  )
}

function Part({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <div className="stack close">
      <h3>{title}</h3>
      {children}
    </div>
  )
}

const VIA = { API_KEY: 'with an API key', SESSION: 'in the console', CONNECTOR: 'as an agent' } as const

function Facts({ item }: { readonly item: AuditItem }) {
  const { actor, rowCount, bytes: size, durationMs, estimate, limit, times } = item
  const facts = [
    exact(item.at),
    rowCount === undefined ? '' : counted(rowCount, 'row'),
    size === undefined ? '' : bytes(size),
    durationMs === undefined ? '' : duration(durationMs),
    estimate === undefined
      ? ''
      : `cost ${number(Math.round(estimate))}${limit === undefined ? '' : ` of ${number(limit)}`}`,
    times === undefined ? '' : `${number(times)} times`,
    item.code ?? '',
  ].filter((fact) => fact !== '')
  return (
    <>
      <Name>{callerWords(item)}</Name>
      {item.keyName !== undefined && actor.name !== undefined && (
        <>
          {' of '}
          <Name>{actor.name}</Name>
        </>
      )}{' '}
      {VIA[item.via]}
      {actor.client !== undefined && (
        <>
          {', '}
          <Name>{actor.client}</Name>
        </>
      )}{' '}
      · <span className="number">{facts.join(' · ')}</span>
    </>
  )
}
