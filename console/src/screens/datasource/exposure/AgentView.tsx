// Shows the description that agents get: the text of the tool describe_datasource, page by page, with its size in
// tokens.
import { ArrowRight, Undo2 } from 'lucide-react'
import { useState } from 'react'
import { useRead } from '../../../api/queries.ts'
import type { Answer, Datasource } from '../../../api/types.ts'
import { asParts, ME, useAsOptions } from '../../../frame/judge-as.ts'
import { Button } from '../../../parts/Button.tsx'
import { CodeBlock } from '../../../parts/CodeBlock.tsx'
import { Dialog } from '../../../parts/Dialog.tsx'
import { NamedNumbers } from '../../../parts/NamedNumbers.tsx'
import { LoadFailed, Loading } from '../../../parts/LoadState.tsx'
import { Notice } from '../../../parts/Notice.tsx'
import { Select } from '../../../parts/Select.tsx'
import { number } from '../../../parts/format.ts'

interface AgentViewProps {
  readonly open: boolean
  readonly onClose: () => void
  readonly datasource: Datasource
  readonly isChanged: boolean
}

export function AgentView({ open, onClose, isChanged, datasource }: AgentViewProps) {
  return (
    <Dialog
      open={open}
      onClose={onClose}
      wide
      title="As an agent sees it"
      description="The exact text that describe_datasource returns to an agent. An agent can query only exposed tables and columns."
      foot={<Button onClick={onClose}>Close</Button>}
    >
      {isChanged && <Notice role="note">Your unsaved changes are not included. Agents see them after you save.</Notice>}
      {open && <Choice datasource={datasource} />}
    </Dialog>
  )
}

const DETAILS = [
  { value: 'fit', label: 'What fits', note: 'default of an agent' },
  { value: 'names', label: 'Names' },
  { value: 'columns', label: 'Columns' },
  { value: 'full', label: 'Everything' },
] as const
type Chosen = (typeof DETAILS)[number]['value']

function Choice({ datasource }: { readonly datasource: Datasource }) {
  const [as, setAs] = useState(ME)
  const [detail, setDetail] = useState<Chosen>('fit')
  return (
    <>
      <div className="agent-choice">
        <Select label="As" options={useAsOptions()} value={as} onChange={setAs} />
        <Select<Chosen> label="Detail" options={DETAILS} value={detail} onChange={setDetail} />
      </div>
      <Pages key={`${as} ${detail}`} datasource={datasource} as={as} detail={detail} />
    </>
  )
}

interface PagesProps {
  readonly datasource: Datasource
  readonly as: string
  readonly detail: Chosen
}

function Pages({ datasource: { teamId, id }, as, detail }: PagesProps) {
  const [cursor, setCursor] = useState<string>()
  const query = { as: asParts(as)?.value, detail: detail === 'fit' ? undefined : detail, cursor }
  const read = useRead('viewAsAgent', { params: { teamId, id }, query })
  // A cursor is valid only for one version of a description, so a retry starts at the first page.
  const again = () => (cursor === undefined ? void read.refetch() : setCursor(undefined))
  if (read.error !== null && read.data === undefined)
    return <LoadFailed what="description" error={read.error} busy={read.isFetching} onRetry={again} />
  if (read.data === undefined) return <Loading what="description" lines={8} />
  const { barred, page } = read.data
  if (page === null)
    return (
      <Notice role="status">{barred} An agent with this role or key gets no information about this datasource.</Notice>
    )
  return (
    <>
      <NamedNumbers of={factsOf(page)} />
      <CodeBlock label="description">{page.schema}</CodeBlock>
      {(page.nextCursor !== null || cursor !== undefined) && (
        <div className="row">
          {cursor !== undefined && (
            <Button icon={Undo2} onClick={() => setCursor(undefined)}>
              First page
            </Button>
          )}
          {page.nextCursor !== null && (
            <Button icon={ArrowRight} onClick={() => setCursor(page.nextCursor ?? undefined)}>
              Next page
            </Button>
          )}
        </div>
      )}
    </>
  )
}

type Page = NonNullable<Answer<'viewAsAgent'>['page']>

function factsOf({ tableCount, shown, detail, tokens }: Page): readonly (readonly [string, string])[] {
  return [
    ['Tables', shown === tableCount ? number(shown) : `${number(shown)} of ${number(tableCount)}`],
    ['Detail', DETAILS.find(({ value }) => value === detail)?.label ?? detail],
    ['Size', `about ${number(tokens)} tokens`],
  ]
}
