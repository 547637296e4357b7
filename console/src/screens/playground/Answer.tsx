// The result of a query: its rows, the text that the database got, the cost, and the same call as a command line.
import { Download, FileJson, LineChart, Table2 } from 'lucide-react'
import { lazy, memo, Suspense, useMemo, useState } from 'react'
import type { Datasource } from '../../api/types.ts'
import { Button } from '../../parts/Button.tsx'
import { CodeBlock } from '../../parts/CodeBlock.tsx'
import { CopyButton } from '../../parts/Copy.tsx'
import { Empty } from '../../parts/Empty.tsx'
import { NamedNumbers } from '../../parts/NamedNumbers.tsx'
import { Loading } from '../../parts/LoadState.tsx'
import { Notice } from '../../parts/Notice.tsx'
import { saveFile } from '../../parts/save-file.ts'
import { Tabs } from '../../parts/Tabs.tsx'
import { bytes, counted, duration, number } from '../../parts/format.ts'
import { csvOf, jsonOf } from './cell-text.ts'
import { chartShape } from './chart-shape.ts'
import { curlOf } from './curl.ts'
import { ResultTable } from './ResultTable.tsx'
import type { Body } from './query-body.ts'
import type { Ran } from './useRun.ts'
import type { Verdict } from './useVerdict.ts'

const Chart = lazy(async () => ({ default: (await import('./Chart.tsx')).Chart }))

type Tab = 'result' | 'saw' | 'cost' | 'curl'
const TABS = [
  { value: 'result', label: 'Result' },
  { value: 'saw', label: 'What the database saw' },
  { value: 'cost', label: 'Plan and cost' },
  { value: 'curl', label: 'As curl' },
] as const

interface AnswerProps {
  readonly datasource: Datasource
  readonly ran: Ran | null
  readonly running: boolean
  readonly stopped: boolean
  readonly body: Body | null
  readonly verdict: Verdict | undefined
  readonly limit: number | null
}

export function Answer({ datasource, ran, running, stopped, body, verdict, limit }: AnswerProps) {
  const [tab, setTab] = useState<Tab>('result')
  return (
    <Tabs label="Answer" tabs={TABS} value={tab} onChange={setTab}>
      {tab === 'result' && <Result name={datasource.name} ran={ran} running={running} stopped={stopped} />}
      {tab === 'saw' && <Saw body={body} verdict={verdict} />}
      {tab === 'cost' && <Cost kind={datasource.type} verdict={verdict} ran={ran} limit={limit} />}
      {tab === 'curl' && <Curl datasource={datasource} body={body} />}
    </Tabs>
  )
}

/** Memoized, because typing a query renders the page again, and the last answer may be large. */
const Result = memo(function Result({
  name,
  ran,
  running,
  stopped,
}: Pick<AnswerProps, 'ran' | 'running' | 'stopped'> & { readonly name: string }) {
  const [plotted, setPlotted] = useState(false)
  const answer = ran?.answer ?? null
  const shape = useMemo(() => (answer === null ? null : chartShape(answer.columns, answer.rows)), [answer])
  if (running) return <Loading what="rows" lines={6} />
  if (stopped) return <Notice role="status">The query was stopped. Vitrine told the database to cancel it.</Notice>
  if (answer === null)
    return (
      <Empty icon={Table2} title={ran === null ? 'No answer yet' : 'No rows'}>
        {ran === null
          ? 'Write a query and run it. Only what is exposed can be read, and nothing can be changed.'
          : 'The query was not answered. The reason is shown above.'}
      </Empty>
    )
  const { columns, rows } = answer
  const isPlotted = plotted && shape !== null
  return (
    <div className="stack close">
      <div className="row apart">
        <span className="small soft number" role="status">
          {counted(answer.rowCount, 'row')} in {duration(answer.durationMs)}
          {answer.truncated &&
            '. The answer reached the limit of rows or bytes, and more rows exist. Narrow the query.'}
        </span>
        <span className="row">
          {shape !== null && (
            <Button small icon={LineChart} aria-pressed={isPlotted} onClick={() => setPlotted(!isPlotted)}>
              Chart
            </Button>
          )}
          <CopyButton small text={() => csvOf(columns, rows)}>
            Copy CSV
          </CopyButton>
          <Button small icon={Download} onClick={() => saveFile(`${name}.csv`, csvOf(columns, rows), 'text/csv')}>
            Download CSV
          </Button>
          <Button
            small
            icon={FileJson}
            onClick={() => saveFile(`${name}.json`, jsonOf(columns, rows), 'application/json')}
          >
            Download JSON
          </Button>
        </span>
      </div>
      {isPlotted && (
        <Suspense fallback={<Loading what="chart" />}>
          <Chart shape={shape} label={`${shape.series.map((each) => each.name).join(', ')} by ${shape.x}`} />
        </Suspense>
      )}
      {rows.length === 0 ? (
        <Empty icon={Table2} title="No rows">
          The query ran, and nothing matches it.
        </Empty>
      ) : (
        <ResultTable columns={columns} rows={rows} key={ran?.datasourceId} />
      )}
    </div>
  )
})

function Saw({ body, verdict }: Pick<AnswerProps, 'body' | 'verdict'>) {
  if (verdict?.printed === undefined)
    return (
      <Notice>
        A query that is not allowed never reaches the database. For an allowed query, the database gets only the text
        that Vitrine prints from the parsed query.
      </Notice>
    )
  const asked = body === null ? '' : 'sql' in body ? body.sql : JSON.stringify(body, null, 2)
  return (
    <div className="columns-2">
      <div className="stack close">
        <h2>Asked</h2>
        <CodeBlock label="query as asked">{asked}</CodeBlock>
      </div>
      <div className="stack close">
        <h2>The database saw</h2>
        <CodeBlock label="query as printed">{verdict.printed}</CodeBlock>
      </div>
    </div>
  )
}

const UNIT = { POSTGRES: 'units of plan cost', MONGODB: 'documents scanned', BIGQUERY: 'bytes processed' } as const

function Cost({
  kind,
  verdict,
  ran,
  limit,
}: Pick<AnswerProps, 'verdict' | 'ran' | 'limit'> & { readonly kind: Datasource['type'] }) {
  const answer = ran?.answer ?? null
  const amount = (value: number) => (kind === 'BIGQUERY' ? bytes(value) : number(Math.round(value)))
  const facts: readonly (readonly [string, string])[] = [
    ['Estimate', verdict?.estimate === undefined ? 'not known' : `${amount(verdict.estimate)} (${UNIT[kind]})`],
    ['Limit of the team', limit === null ? 'not known' : amount(limit)],
    ['Rows answered', answer === null ? 'not run yet' : number(answer.rowCount)],
    ['Time', answer === null ? 'not run yet' : duration(answer.durationMs)],
  ]
  return <NamedNumbers of={facts} />
}

function Curl({ datasource, body }: Pick<AnswerProps, 'datasource' | 'body'>) {
  if (body === null) return <Notice>Write a query first.</Notice>
  return (
    <div className="stack close">
      <CodeBlock label="curl command">{curlOf(location.origin, datasource.teamId, datasource.id, body)}</CodeBlock>
      <p className="small soft">
        First store an API key with the scope data:read in the environment variable VITRINE_KEY. You create keys under
        API keys.
      </p>
    </div>
  )
}
