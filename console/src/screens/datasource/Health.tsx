// The state of the connection and its login, and the changes in the database since the exposure was saved.
import { Link } from '@tanstack/react-router'
import { PlugZap, Telescope } from 'lucide-react'
import type { ReactNode } from 'react'
import { isStatus } from '../../api/failure.ts'
import { useCall, useRead } from '../../api/queries.ts'
import type { Answer } from '../../api/types.ts'
import { useTeam } from '../../frame/current-team.ts'
import { Button } from '../../parts/Button.tsx'
import { LoadState } from '../../parts/LoadState.tsx'
import { Failure } from '../../parts/Notice.tsx'
import { State } from '../../parts/Tag.tsx'
import { counted, number } from '../../parts/format.ts'
import { Time } from '../../parts/Time.tsx'
import { LongText } from '../../parts/UntrustedText.tsx'
import { TestReport } from '../datasources/TestReport.tsx'
import { useDatasource } from './Datasource.tsx'
import { useLook } from './introspect.ts'
import { IntrospectionProgress } from './IntrospectionProgress.tsx'
import '../datasources/connect.css'
import './exposure/exposure.css'

export function Health() {
  return (
    <div className="health">
      <Connection />
      <Database />
    </div>
  )
}

function Connection() {
  const { teamId, id, status, lastError, lastTestedAt } = useDatasource()
  const params = { teamId, id }
  const last = useRead('getTest', { params })
  const test = useCall('testDatasource')
  const neverChecked = isStatus(last.error, 404)
  return (
    <section className="panel" aria-label="Connection">
      <header>
        <h2>Connection</h2>
        <Button small icon={PlugZap} busy={test.isPending} onClick={() => test.mutate({ params })}>
          Check connection
        </Button>
        <p className="row">
          <State of={status} />
          {lastTestedAt !== null && (
            <span>
              checked <Time at={lastTestedAt} />
            </span>
          )}
        </p>
      </header>
      <div className="panel-body">
        {status === 'ERROR' && lastError !== null && (
          <p>
            <LongText>{lastError}</LongText>
          </p>
        )}
        <Failure of={test.error} />
        {neverChecked ? (
          <p className="soft">This connection was not checked yet.</p>
        ) : (
          <LoadState of={last} what="last check">
            {(report) => <TestReport of={report} />}
          </LoadState>
        )}
      </div>
    </section>
  )
}

function Database() {
  const datasource = useDatasource()
  const { teamId, id, schemaCapturedAt, tableCount, status } = datasource
  const drift = useRead('getDrift', { params: { teamId, id } })
  const look = useLook(datasource)
  return (
    <section className="panel" aria-label="Changes in the database">
      <header>
        <h2>Changes in the database</h2>
        <Button small icon={Telescope} busy={look.busy} disabled={status === 'DISABLED'} onClick={look.run}>
          Look again
        </Button>
        <p>
          {schemaCapturedAt === null || schemaCapturedAt === undefined ? (
            'Nobody looked at this database yet.'
          ) : (
            <>
              Last look <Time at={schemaCapturedAt} />
              {tableCount !== null && tableCount !== undefined && `, ${counted(tableCount, 'table')}`}
            </>
          )}
        </p>
      </header>
      <div className="panel-body">
        <IntrospectionProgress look={look} />
        <LoadState of={drift} what="changes">
          {(changes) => <Drift of={changes} />}
        </LoadState>
      </div>
    </section>
  )
}

type DriftAnswer = Answer<'getDrift'>
type Item = DriftAnswer['added'][number]

function Drift({ of: { added, removed, retyped, since } }: { readonly of: DriftAnswer }) {
  const team = useTeam()
  const { id } = useDatasource()
  if (since === null)
    return <p className="soft">There is nothing to compare with yet. Save an exposure after the first look.</p>
  if (added.length + removed.length + retyped.length === 0)
    return <p className="soft">Nothing changed since the exposure was saved.</p>
  return (
    <>
      <Names label="New" items={added}>
        Hidden until somebody{' '}
        <Link to="/t/$team/datasources/$id/exposure" params={{ team: team.slug, id }}>
          exposes them
        </Link>
        . New parts of an exposed column are shown at once.
      </Names>
      <Names label="Gone" items={removed}>
        Queries that name them are refused.
      </Names>
      <Names label="Retyped" items={retyped}>
        Exposed columns stay exposed, with their new type, if that type can be exposed.
      </Names>
    </>
  )
}

const SHOWN = 100

interface NamesProps {
  readonly label: string
  readonly items: readonly Item[]
  readonly children: ReactNode
}

function Names({ label, items, children }: NamesProps) {
  if (items.length === 0) return null
  const rest = items.length - SHOWN
  return (
    <section className="stack close">
      <h3>
        {label} <span className="tiny number">{number(items.length)}</span>
      </h3>
      <p className="tiny">{children}</p>
      <ul className="changes" aria-label={label}>
        {items.slice(0, SHOWN).map(({ schema, table, column, type, was }) => (
          <li key={`${schema}\0${table}\0${column ?? ''}`}>
            <bdi>{[schema, table, column].filter((each) => each !== undefined).join('.')}</bdi>
            {type !== undefined && <span className="soft">{was === undefined ? type : `${was} → ${type}`}</span>}
          </li>
        ))}
        {rest > 0 && <li className="soft">and {number(rest)} more</li>}
      </ul>
    </section>
  )
}
