// The description that keys and agents get, as the service answers it, with its size.
import { useQuery } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { respond } from '../../../api/client.ts'
import type { Answer, Datasource } from '../../../api/types.ts'
import { Button } from '../../../parts/Button.tsx'
import { CodeBlock } from '../../../parts/CodeBlock.tsx'
import { Dialog } from '../../../parts/Dialog.tsx'
import { TextField } from '../../../parts/Field.tsx'
import { LoadFailed, Loading } from '../../../parts/Load.tsx'
import { Notice } from '../../../parts/Notice.tsx'
import { bytes, counted, number } from '../../../parts/time.ts'
import { approximateTokens } from './tokens.ts'

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
      description="What every key and agent that reaches this datasource is told. What is not here does not exist for them."
      foot={<Button onClick={onClose}>Close</Button>}
    >
      {isChanged && (
        <Notice role="note">Your unsaved changes are not part of it. Agents see them after you saved.</Notice>
      )}
      {open && <Description datasource={datasource} />}
    </Dialog>
  )
}

type DescriptionAnswer = Answer<'describeDatasource'>

function Description({ datasource: { teamId, id } }: { readonly datasource: Datasource }) {
  const read = useQuery({
    queryKey: ['describeDatasource', teamId, id, 'text'],
    structuralSharing: false,
    queryFn: async ({ signal }) => {
      const text = await (await respond('describeDatasource', { params: { teamId, id } }, signal)).text()
      const description: DescriptionAnswer = JSON.parse(text)
      return { text, description }
    },
  })
  if (read.error !== null)
    return <LoadFailed what="description" error={read.error} onRetry={() => void read.refetch()} />
  if (read.data === undefined) return <Loading what="description" lines={8} />
  return <Shown {...read.data} />
}

/** More than this is not put into the page at once. */
const SHOWN_CHARACTERS = 60_000

function Shown({ text, description }: { readonly text: string; readonly description: DescriptionAnswer }) {
  const [word, setWord] = useState('')
  const { tables } = description
  const size = useMemo(() => new TextEncoder().encode(text).length, [text])
  const columns = tables.reduce((sum, table) => sum + table.columns.length, 0)
  const wanted = word.trim().toLowerCase()
  const shown = tables.filter(({ schema, table }) => `${schema}.${table}`.toLowerCase().includes(wanted))
  const whole = useMemo(() => textOf(description, shown), [description, shown.length, wanted])
  if (tables.length === 0) return <p>Nothing. Agents see the name of the datasource and no table.</p>
  return (
    <>
      <dl className="agent-facts">
        <Fact name="Tables" value={number(tables.length)} />
        <Fact name="Columns" value={number(columns)} />
        <Fact name="Size" value={bytes(size)} />
        <Fact name="Tokens" value={`about ${number(approximateTokens(text))}`} />
      </dl>
      {tables.length > 1 && (
        <TextField
          label="Tables named like"
          type="search"
          value={word}
          onChange={(event) => setWord(event.target.value)}
          note={wanted === '' ? undefined : `${counted(shown.length, 'table')} of ${number(tables.length)}`}
        />
      )}
      <CodeBlock label="description">{whole}</CodeBlock>
    </>
  )
}

function textOf(description: DescriptionAnswer, tables: DescriptionAnswer['tables']): string {
  let text = JSON.stringify({ ...description, tables: [] }, null, 2).replace(/\[\]\n\}$/, '[')
  for (const [n, table] of tables.entries()) {
    const one = JSON.stringify(table, null, 2).replace(/^/gm, '    ')
    if (text.length + one.length > SHOWN_CHARACTERS && n > 0)
      return `${text}\n    … and ${counted(tables.length - n, 'more table', 'more tables')}`
    text += `\n${one}${n < tables.length - 1 ? ',' : ''}`
  }
  return `${text}\n  ]\n}`
}

const Fact = ({ name, value }: { readonly name: string; readonly value: string }) => (
  <div>
    <dt>{name}</dt>
    <dd>{value}</dd>
  </div>
)
