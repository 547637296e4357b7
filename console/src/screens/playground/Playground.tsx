// The page for trying queries: shows a verdict while the person types, and the answer after a run.
import { useNavigate, useSearch } from '@tanstack/react-router'
import { Check, Database, LoaderCircle, Play, Square, TriangleAlert, X } from 'lucide-react'
import { lazy, Suspense, useMemo, useState } from 'react'
import { Refused } from '../../api/failure.ts'
import { useRead } from '../../api/queries.ts'
import type { Datasource, TeamDetail } from '../../api/types.ts'
import { asParts, ME, useAsOptions } from '../../frame/judge-as.ts'
import { MOD } from '../../frame/keyboard-shortcuts.ts'
import { Page } from '../../frame/Page.tsx'
import { hasRole, useTeam } from '../../frame/current-team.ts'
import { Button, LinkButton } from '../../parts/Button.tsx'
import { Empty } from '../../parts/Empty.tsx'
import { LoadState, Loading } from '../../parts/LoadState.tsx'
import { Failure } from '../../parts/Notice.tsx'
import { Select } from '../../parts/Select.tsx'
import { Tag } from '../../parts/Tag.tsx'
import { counted, number } from '../../parts/format.ts'
import { Answer } from './Answer.tsx'
import { bodyOf, spanAt, STARTER, type Written } from './query-body.ts'
import { Refusal, refusalOf } from './Refusal.tsx'
import { useRun } from './useRun.ts'
import { useVerdict, type As, type Judged } from './useVerdict.ts'
import './playground.css'

const Editor = lazy(async () => ({ default: (await import('./Editor.tsx')).Editor }))

export function Playground() {
  const team = useTeam()
  const datasources = useRead('listDatasources', { params: { teamId: team.id } })
  return (
    <Page title="Playground" lead="Queries here are judged and counted like those of an API key." width="full">
      <LoadState of={datasources} what="datasources">
        {(all) => (all.length === 0 ? <NoDatasource /> : <Bench datasources={all} />)}
      </LoadState>
    </Page>
  )
}

function NoDatasource() {
  const team = useTeam()
  return (
    <Empty
      icon={Database}
      title="No datasource yet"
      acts={
        hasRole(team, 'ADMIN') && (
          <LinkButton look="primary" to="/t/$team/datasources/new" params={{ team: team.slug }}>
            Connect a datasource
          </LinkButton>
        )
      }
    >
      Connect a database first, and choose what may be read.
    </Empty>
  )
}

function Bench({ datasources }: { readonly datasources: readonly Datasource[] }) {
  const team = useTeam()
  const navigate = useNavigate()
  const search = useSearch({ strict: false })
  const datasource = datasources.find(({ id, name }) => id === search.ds || name === search.ds) ?? datasources[0]
  if (datasource === undefined) throw new Error('no datasource')
  const at = useMemo(() => ({ teamId: team.id, id: datasource.id }), [team.id, datasource.id])

  const [text, setText] = useState(search.q ?? STARTER[datasource.type])
  const [as, setAs] = useState(search.as ?? 'me')
  const written = useMemo(() => bodyOf(datasource.type, text), [datasource.type, text])
  const body = written.kind === 'body' ? written.body : null
  const settings = useRead('getTeam', { params: { teamId: team.id } }).data?.settings
  const tables = useTables(at)
  const asOptions = useAsOptions()
  const judged = useVerdict(at, body, asOf(as))
  const run = useRun()

  const ranHere = run.ran !== null && run.ran.datasourceId === datasource.id ? run.ran : null
  const ranThis = ranHere !== null && JSON.stringify(ranHere.body) === JSON.stringify(body) ? ranHere : null
  const refusal = refusalOf(ranThis?.error ?? null) ?? refusalOf(judged.verdict ?? null)
  const problem = useMemo(() => {
    const span = refusal === null ? null : spanAt(datasource.type, text, refusal.position)
    return span === null || refusal === null ? null : { ...span, message: refusal.sentence }
  }, [datasource.type, text, refusal?.position, refusal?.sentence])

  const canRun = body !== null && as === 'me' && !run.running
  const start = () => (canRun ? run.start(at, body) : Promise.resolve(null))
  const choose = (id: string) => {
    const next = datasources.find((each) => each.id === id)
    if (next !== undefined && (text === STARTER[datasource.type] || text.trim() === '')) setText(STARTER[next.type])
    run.forget()
    void navigate({ to: '/t/$team/playground', params: { team: team.slug }, search: { ds: id }, replace: true })
  }
  const limit = settings === undefined ? null : limitOf(settings, datasource.type)
  return (
    <div className="stack">
      <section className="panel bench" aria-label="Query and verdict">
        <div className="bench-head">
          <Select
            bare
            label="Datasource"
            value={datasource.id}
            options={datasources.map(({ id, name }) => ({ value: id, label: name }))}
            onChange={choose}
          />
          <span className="row">
            <span className="small soft" aria-hidden>
              Run as
            </span>
            <Select bare label="Run as" value={as} options={asOptions} onChange={setAs} />
          </span>
        </div>
        <Suspense fallback={<Loading what="editor" lines={4} />}>
          <Editor
            kind={datasource.type}
            text={text}
            onText={setText}
            tables={tables}
            problem={problem}
            onRun={() => void start()}
            onStop={run.stop}
          />
        </Suspense>
        <footer className="bench-foot">
          <VerdictLine written={written} judged={judged} />
          <CostMeter estimate={judged.verdict?.estimate} limit={limit} />
          <span className="row">
            <BudgetLeft teamId={team.id} />
            {as !== ME && <span className="tiny">This choice is for checks only. To read rows, run as yourself.</span>}
            <Button icon={Square} disabled={!run.running} onClick={run.stop}>
              Stop
            </Button>
            <Button
              look="primary"
              icon={Play}
              busy={run.running}
              disabled={!canRun && !run.running}
              onClick={() => void start()}
            >
              Run query
              <kbd aria-hidden className="on-primary">
                {MOD}↵
              </kbd>
            </Button>
          </span>
        </footer>
      </section>
      {refusal !== null && <Refusal refusal={refusal} at={at} ran={ranThis} run={start} />}
      {refusal === null && ranThis !== null && <Failure of={ranThis.error} />}
      <Answer
        datasource={datasource}
        ran={ranHere}
        running={run.running}
        stopped={run.stopped}
        body={body}
        verdict={judged.verdict}
        limit={limit}
      />
    </div>
  )
}

/** Returns the tables that a query may name, for completion. */
function useTables(params: { readonly teamId: string; readonly id: string }) {
  const { data } = useRead('describeDatasource', { params })
  return useMemo(
    () =>
      (data?.tables ?? []).map(({ schema, table, columns }) => ({
        schema,
        table,
        columns: columns.map(({ name }) => name),
      })),
    [data],
  )
}

function asOf(chosen: string): As {
  const parts = asParts(chosen)
  if (parts === null) return undefined
  return parts.kind === 'role' ? { role: parts.value } : { keyId: parts.value }
}

function limitOf(settings: NonNullable<TeamDetail['settings']>, kind: Datasource['type']): number {
  switch (kind) {
    case 'POSTGRES':
      return settings.postgresMaxPlanCost
    case 'MONGODB':
      return settings.mongodbMaxScannedDocuments
    case 'BIGQUERY':
      return settings.bigqueryMaxBytes
    default:
      return kind satisfies never
  }
}

function VerdictLine({ written, judged }: { readonly written: Written; readonly judged: Judged }) {
  return (
    <div role="status" aria-label="Verdict" className="verdict">
      <VerdictWords written={written} judged={judged} />
    </div>
  )
}

function VerdictWords({
  written,
  judged: { verdict, checking, error },
}: {
  readonly written: Written
  readonly judged: Judged
}) {
  if (written.kind === 'empty') return <span className="soft">Write a query. It is checked while you type.</span>
  if (written.kind === 'problem')
    return (
      <Tag bare tone="warn" icon={TriangleAlert}>
        <bdi>{written.problem}</bdi>
      </Tag>
    )
  if (verdict === undefined && error !== null)
    return (
      <span className="soft">
        {error instanceof Refused ? error.message : 'The check failed. You can still run the query.'}
      </span>
    )
  if (verdict === undefined)
    return (
      <Tag bare icon={LoaderCircle}>
        {checking ? 'Checking…' : 'Not checked'}
      </Tag>
    )
  if (verdict.verdict === 'ALLOWED')
    return (
      <Tag bare tone="ok" icon={Check}>
        Allowed
      </Tag>
    )
  return verdict.verdict === 'DENIED' ? (
    <Tag bare tone="bad" icon={X}>
      Would be refused
    </Tag>
  ) : (
    <Tag bare tone="warn" icon={TriangleAlert}>
      Not a valid query yet
    </Tag>
  )
}

/** Shows the cost as a share of the limit, on a logarithmic scale, because costs differ by powers of ten. */
function CostMeter({ estimate, limit }: { readonly estimate: number | undefined; readonly limit: number | null }) {
  if (limit === null) return null
  const now = Math.min(limit, Math.round(estimate ?? 0))
  const share = estimate === undefined ? 0 : Math.log1p(Math.min(estimate, limit)) / Math.log1p(limit)
  const words = estimate === undefined ? 'not known' : `${number(Math.round(estimate))} of ${number(limit)}`
  return (
    <div className="cost">
      <span className="small soft" aria-hidden>
        Cost
      </span>
      <div
        role="meter"
        aria-label="Cost"
        aria-valuemin={0}
        aria-valuemax={limit}
        aria-valuenow={now}
        aria-valuetext={words}
        className={estimate !== undefined && estimate > limit ? 'meter bad' : 'meter'}
      >
        <span style={{ width: `${Math.round(share * 100)}%` }} />
      </div>
      <span className="tiny number" aria-hidden>
        {words}
      </span>
    </div>
  )
}

function BudgetLeft({ teamId }: { readonly teamId: string }) {
  const budget = useRead('getUsage', { params: { teamId }, query: { days: 1 } }).data?.budget
  if (budget === undefined) return null
  return (
    <span className="tiny number">
      {number(budget.remaining)} of {counted(budget.limit, 'query', 'queries')} left
    </span>
  )
}
