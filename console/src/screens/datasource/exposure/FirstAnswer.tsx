// The last step of connecting a database. After tables are saved, the person creates a key and sees the first call with
// this key live.
import { useQuery } from '@tanstack/react-query'
import { Link, useBlocker } from '@tanstack/react-router'
import { KeyRound } from 'lucide-react'
import { useState } from 'react'
import { call } from '../../../api/client.ts'
import { queryClient, useRead } from '../../../api/queries.ts'
import type { Answer } from '../../../api/types.ts'
import { useTeam } from '../../../frame/current-team.ts'
import { Button } from '../../../parts/Button.tsx'
import { AlertDialog } from '../../../parts/Dialog.tsx'
import { CodeBlock } from '../../../parts/CodeBlock.tsx'
import { CopyField } from '../../../parts/CopyField.tsx'
import { Checkbox } from '../../../parts/Field.tsx'
import { Failure, Notice } from '../../../parts/Notice.tsx'
import { counted, duration } from '../../../parts/format.ts'
import { useAction } from '../../../parts/useAction.ts'
import { ConnectSteps } from '../../datasources/ConnectSteps.tsx'
import { useDatasource } from '../Datasource.tsx'
import type { Choice } from './choice.ts'
import '../../datasources/connect.css'

const DAY_MS = 86_400_000
const KEY_DAYS = 90
const POLL_MS = 2_000

export function FirstAnswer({ saved }: { readonly saved: Choice }) {
  const { id, name, teamId } = useDatasource()
  const [key, setKey] = useState<Answer<'createKey'> | null>(null)
  const [stored, setStored] = useState(false)
  const create = useAction(async () => {
    const body = {
      name: `Agent for ${name}`.slice(0, 100),
      scopes: ['data:schema', 'data:read'] as const,
      teamIds: [teamId],
      datasourceIds: [id],
      expiresAt: new Date(Date.now() + KEY_DAYS * DAY_MS).toISOString(),
    }
    setKey(await call('createKey', { body }))
    void queryClient.invalidateQueries({ queryKey: ['listKeys'] })
  })
  return (
    <section className="refusal" aria-label="First answer">
      <ConnectSteps at={4} />
      {saved.size === 0 ? (
        <p>
          Tick the tables that agents may query, review the changes, and save. Until you save, nothing is shown to
          anyone.
        </p>
      ) : key === null ? (
        <>
          <p>The tables are shown. Create a key for this datasource only. It is valid for {KEY_DAYS} days.</p>
          <div>
            <Button look="primary" icon={KeyRound} busy={create.busy} onClick={create.run}>
              Create key
            </Button>
          </div>
          <Failure of={create.error} />
        </>
      ) : (
        <WithKey made={key} saved={saved} onStored={setStored} />
      )}
      <Leaving held={key !== null && !stored} />
    </section>
  )
}

/** Asks for confirmation before the only copy of a key is lost. */
function Leaving({ held }: { readonly held: boolean }) {
  const leaving = useBlocker({
    shouldBlockFn: ({ current, next }) => held && current.pathname !== next.pathname,
    enableBeforeUnload: held,
    withResolver: true,
  })
  return (
    <AlertDialog
      open={leaving.status === 'blocked'}
      onClose={() => leaving.reset?.()}
      title="Leave without the key?"
      description="The key is shown only once. If you lose it, create another key under API keys."
      foot={
        <>
          <Button className="start" onClick={() => leaving.proceed?.()}>
            Leave
          </Button>
          <Button look="primary" onClick={() => leaving.reset?.()}>
            Stay
          </Button>
        </>
      }
    />
  )
}

interface WithKeyProps {
  readonly made: Answer<'createKey'>
  readonly saved: Choice
  readonly onStored: (stored: boolean) => void
}

function WithKey({ made, saved, onStored }: WithKeyProps) {
  const team = useTeam()
  const { id, type } = useDatasource()
  const instance = useRead('getInstance', {})
  const origin = instance.data?.publicUrl ?? location.origin
  const body = exampleOf(type, saved)
  const command = [
    `curl -s ${origin}/teams/${team.id}/datasources/${id}/query \\`,
    `  -H 'Authorization: Bearer ${made.key}' \\`,
    `  -H 'Content-Type: application/json' \\`,
    `  -d '${JSON.stringify(body).replaceAll("'", String.raw`'\''`)}'`,
  ].join('\n')
  return (
    <>
      <p>Copy the key now: it is shown only once. Then send a query with it.</p>
      <CopyField label="API key" value={made.key} verb="Copy key" />
      <CodeBlock label="curl">{command}</CodeBlock>
      <Checkbox label="I have stored this key" onChange={(event) => onStored(event.target.checked)} />
      <FirstCall keyId={made.id} />
    </>
  )
}

/** Returns a query for a few rows of the first table. */
function exampleOf(type: 'POSTGRES' | 'MONGODB' | 'BIGQUERY', saved: Choice): object {
  const [schema = '', table = ''] = [...saved.keys()][0]?.split('\0') ?? []
  if (type === 'MONGODB') return { collection: table, limit: 5 }
  if (type === 'BIGQUERY') return { sql: `SELECT * FROM \`${schema}.${table}\``, limit: 5 }
  const quoted = [schema, table].map((name) => `"${name.replaceAll('"', '""')}"`).join('.')
  return { sql: `SELECT * FROM ${quoted}`, limit: 5 }
}

function FirstCall({ keyId }: { readonly keyId: string }) {
  const team = useTeam()
  const { id } = useDatasource()
  const first = useQuery({
    queryKey: ['firstCall', keyId],
    queryFn: async ({ signal }) => {
      const query = { keyId, datasourceId: id, action: 'runQuery', limit: 1 }
      const page = await call('listAudit', { params: { teamId: team.id }, query }, signal)
      return page.items[0] ?? null
    },
    refetchInterval: ({ state }) => (state.data?.outcome === 'ANSWERED' ? false : POLL_MS),
  })
  const item = first.data
  if (item === undefined || item === null)
    return (
      <p className="row soft">
        <span className="spinner" aria-hidden />
        <span>Waiting for the first call with this key.</span>
      </p>
    )
  if (item.outcome !== 'ANSWERED')
    return (
      <Notice tone="warn" role="status">
        {item.outcome === 'DENIED' ? 'A call arrived and was refused.' : 'A call arrived and failed.'} {item.error}
      </Notice>
    )
  return (
    <Notice tone="ok" role="status">
      <p>
        Your first call arrived: {counted(item.rowCount ?? 0, 'row')} in {duration(item.durationMs ?? 0)}.
      </p>
      <p>
        <Link to="/t/$team/activity" params={{ team: team.slug }}>
          See it in Activity
        </Link>
      </p>
    </Notice>
  )
}
