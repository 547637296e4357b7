// Texts about tables and columns. Rules or a model propose them, people accept them, and agents read the published
// texts.
import { useNavigate, useSearch } from '@tanstack/react-router'
import { BookOpenText, CheckCheck, History, Send, Sparkles } from 'lucide-react'
import { useState, type KeyboardEvent } from 'react'
import { call } from '../../api/client.ts'
import { sentenceOf } from '../../api/failure.ts'
import { queryClient, useCall, useRead } from '../../api/queries.ts'
import { Button } from '../../parts/Button.tsx'
import { Empty } from '../../parts/Empty.tsx'
import { TextArea } from '../../parts/Field.tsx'
import { LoadState } from '../../parts/LoadState.tsx'
import { Failure, Notice } from '../../parts/Notice.tsx'
import { say } from '../../parts/StatusMessages.tsx'
import { counted, number } from '../../parts/format.ts'
import { Time } from '../../parts/Time.tsx'
import { useAction } from '../../parts/useAction.ts'
import { useDatasource } from './Datasource.tsx'
import { AcceptMany } from './documentation/AcceptMany.tsx'
import { Publications } from './documentation/Publications.tsx'
import { StateOf, TextGroup } from './documentation/TextGroup.tsx'
import { bodyFor, coverageOf, keyOf, textsOf } from './documentation/texts.ts'
import type { Documentation as Texts, Place, Status, TableTexts } from './documentation/texts.ts'
import './documentation/documentation.css'

export function Documentation() {
  const { teamId, id } = useDatasource()
  const texts = useRead('getDocumentation', { params: { teamId, id } })
  return (
    <LoadState of={texts} what="texts">
      {(documentation) => <Page documentation={documentation} />}
    </LoadState>
  )
}

const POLL_MS = 500

function Page({ documentation }: { readonly documentation: Texts }) {
  const { teamId, id } = useDatasource()
  const params = { teamId, id }
  const tables = documentation.tables.filter(({ gone }) => gone !== true)
  const { table: wanted } = useSearch({ strict: false })
  const navigate = useNavigate()
  const current = tables.find((each) => nameOf(each) === wanted) ?? tables[0]
  const propose = useAction(async () => {
    const { jobId } = await call('generateDocumentation', { params, body: {} })
    for (;;) {
      const job = await call('getJob', { params: { ...params, jobId } })
      if (job.state === 'DONE') break
      if (job.state === 'FAILED' || job.state === 'CANCELLED')
        throw new ProposalEnded(job.error ?? 'The job was cancelled.')
      await new Promise((resolve) => setTimeout(resolve, POLL_MS))
    }
    await queryClient.invalidateQueries()
    say('Texts are proposed')
  })
  const publish = useCall('publishDocumentation')
  const put = useAction(async () => {
    const { nothing } = await publish.mutateAsync({ params, body: { version: documentation.version } })
    say(nothing === true ? 'Nothing new to publish' : 'Published')
  })
  const coverage = coverageOf(tables)
  const [open, setOpen] = useState<'accept' | 'publications' | null>(null)
  const close = () => setOpen(null)
  return (
    <div className="documentation">
      <div className="row apart">
        <p role="status" aria-label="Coverage" className="soft">
          {number(coverage.summarized)} of {counted(coverage.tables, 'table')} described
          {coverage.proposed > 0 && ` · ${counted(coverage.proposed, 'text', 'texts')} to review`}
          {coverage.stale > 0 && ` · ${number(coverage.stale)} stale`}
          {' · '}
          {documentation.publishedAt === null ? (
            'never published'
          ) : (
            <>
              published <Time at={documentation.publishedAt} />
            </>
          )}
        </p>
        <div className="row">
          <Button icon={History} onClick={() => setOpen('publications')}>
            Publications
          </Button>
          {current !== undefined && coverage.proposed > 0 && (
            <Button icon={CheckCheck} onClick={() => setOpen('accept')}>
              Accept many
            </Button>
          )}
          <Button icon={Sparkles} busy={propose.busy} onClick={propose.run}>
            Propose texts
          </Button>
          <Button icon={Send} look="primary" busy={put.busy} disabled={tables.length === 0} onClick={put.run}>
            Publish
          </Button>
        </div>
      </div>
      {propose.error instanceof ProposalEnded ? (
        <Notice tone="bad">{propose.error.message}</Notice>
      ) : (
        propose.error !== null && <Notice tone="bad">{sentenceOf(propose.error)}</Notice>
      )}
      <Failure of={put.error} />
      {current === undefined ? (
        <Empty icon={BookOpenText} title="No text yet">
          Propose texts for the exposed tables. A text is published only after somebody accepts it.
        </Empty>
      ) : (
        <div className="doc-columns">
          <Tables
            tables={tables}
            current={current}
            onChoose={(table) => void navigate({ to: '.', search: { table: nameOf(table) }, replace: true })}
          />
          <Article key={nameOf(current)} table={current} version={documentation.version} />
        </div>
      )}
      {current !== undefined && (
        <AcceptMany
          open={open === 'accept'}
          onClose={close}
          tables={tables}
          current={current}
          version={documentation.version}
        />
      )}
      <Publications open={open === 'publications'} onClose={close} />
    </div>
  )
}

/** The job that proposes texts ended without a result. */
class ProposalEnded extends Error {}

const nameOf = ({ schema, table }: TableTexts) => `${schema}.${table}`

interface TablesProps {
  readonly tables: readonly TableTexts[]
  readonly current: TableTexts
  readonly onChoose: (table: TableTexts) => void
}

function Tables({ tables, current, onChoose }: TablesProps) {
  const at = tables.indexOf(current)
  const onKeyDown = (event: KeyboardEvent) => {
    const steps: Readonly<Record<string, number>> = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      Home: 0,
      End: tables.length - 1,
    }
    const table = tables[steps[event.key] ?? -1]
    if (table === undefined) return
    event.preventDefault()
    onChoose(table)
  }
  return (
    <div
      className="doc-tables"
      role="listbox"
      aria-label="Tables"
      tabIndex={0}
      aria-activedescendant={`doc-table-${at}`}
      onKeyDown={onKeyDown}
    >
      {tables.map((table, n) => {
        const { proposed, stale, summarized } = coverageOf([table])
        return (
          <div
            key={nameOf(table)}
            id={`doc-table-${n}`}
            role="option"
            aria-selected={table === current}
            className="doc-table"
            onClick={() => onChoose(table)}
          >
            <bdi className="cut">{table.table}</bdi>
            <span className="tiny">
              {proposed > 0 ? `${number(proposed)} to review` : stale > 0 ? 'stale' : summarized > 0 ? 'described' : ''}
            </span>
          </div>
        )
      })}
    </div>
  )
}

function Article({ table, version }: { readonly table: TableTexts; readonly version: number }) {
  const { teamId, id } = useDatasource()
  const put = useCall('putDocumentation')
  const change = async (place: Place, to: { text?: string; status: Status }) => {
    const params = { teamId, id, schema: table.schema, table: table.table }
    await put.mutateAsync({ params, body: { ...bodyFor(table, place, to), version } })
  }
  const saved = table.summary?.text ?? ''
  const [typed, setTyped] = useState<string | null>(null)
  const summary = typed ?? saved
  const save = useAction(async () => {
    await change({ kind: 'summary' }, { text: summary.trim(), status: 'ACCEPTED' })
    setTyped(null)
    say('Summary accepted')
  })
  const reject = useAction(async () => {
    await change({ kind: 'summary' }, { status: 'REJECTED' })
    setTyped(null)
  })
  const isUntouched = table.summary?.status === 'ACCEPTED' && summary === saved && !table.summary.stale
  const texts = textsOf(table)
  return (
    <article className="panel" aria-label={table.table}>
      <header>
        <h2>
          <bdi>{nameOf(table)}</bdi>
        </h2>
        {table.summary !== null && <StateOf text={table.summary} />}
      </header>
      <div className="panel-body">
        <TextArea
          label="Summary"
          maxLength={2_000}
          value={summary}
          onChange={(event) => setTyped(event.target.value)}
          note="What one row is, and when to use the table. Agents read the summary first."
        />
        <Failure of={save.error ?? reject.error} />
        <div className="row end">
          {table.summary !== null && table.summary.status !== 'REJECTED' && (
            <Button small busy={reject.busy} onClick={reject.run}>
              Reject summary
            </Button>
          )}
          <Button
            small
            look="primary"
            busy={save.busy}
            disabled={summary.trim() === '' || isUntouched}
            onClick={save.run}
          >
            {summary === saved ? 'Accept summary' : 'Save summary'}
          </Button>
        </div>
        {texts.map((placed) => (
          <TextGroup key={keyOf(placed.place)} placed={placed} onChange={(to) => change(placed.place, to)} />
        ))}
      </div>
    </article>
  )
}
