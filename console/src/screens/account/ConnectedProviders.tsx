// The person's accounts at GitHub, Google or the company's provider. The person can sign in here with each of them, as
// long as this installation has the provider.
import { useMutation, type UseQueryResult } from '@tanstack/react-query'
import { useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { auth } from '../../api/client.ts'
import type { Method } from '../../api/sign-in-options.ts'
import type { AuthBody } from '../../api/types.ts'
import { Button } from '../../parts/Button.tsx'
import { AlertDialog } from '../../parts/Dialog.tsx'
import { DialogForm } from '../../parts/DialogForm.tsx'
import { LoadState } from '../../parts/LoadState.tsx'
import { Failure, Notice } from '../../parts/Notice.tsx'
import { Panel } from '../../parts/Panel.tsx'
import { say } from '../../parts/StatusMessages.tsx'
import { Table } from '../../parts/Table.tsx'
import { Tag } from '../../parts/Tag.tsx'
import { Time } from '../../parts/Time.tsx'
import { useAction } from '../../parts/useAction.ts'
import { PROVIDERS, ProviderIcon } from '../sign-in/OtherWays.tsx'
import { named, providerName, providerSentence } from '../sign-in/provider-failure.ts'
import type { Ways } from './Passkeys.tsx'

type Provider = AuthBody<'POST /auth/connect-provider'>['provider']
type Connection = Ways['providers'][number]

/** A provider that is connected or can be connected. */
interface Row {
  readonly provider: Provider
  readonly name: string
  readonly connection: Connection | undefined
}

/** Shows the result of a redirect to a provider. */
export function ConnectionOutcome({ oidcName }: { readonly oidcName: string | undefined }) {
  const { failed, provider, connected } = useSearch({ strict: false })
  const failure = providerSentence({ failed, provider }, oidcName)
  if (failure !== null) return <Notice tone="bad">{failure}</Notice>
  if (!PROVIDERS.some((known) => known === connected)) return null
  return (
    <Notice tone="ok" role="status">
      <bdi>{providerName(connected, oidcName)}</bdi> is connected.
    </Notice>
  )
}

interface ConnectedProvidersProps {
  readonly ways: UseQueryResult<Ways>
  readonly methods: readonly Method[]
  readonly oidcName: string | undefined
}

export function ConnectedProviders({ ways, methods, oidcName }: ConnectedProvidersProps) {
  const [leaving, disconnect] = useState<Connection | null>(null)
  const rowsOf = ({ providers }: Ways): readonly Row[] =>
    PROVIDERS.flatMap((provider) => {
      const connection = providers.find((each) => each.provider === provider)
      if (connection === undefined && !methods.includes(provider)) return []
      return [{ provider, name: connection?.name ?? providerName(provider, oidcName), connection }]
    })
  if (ways.data !== undefined && rowsOf(ways.data).length === 0) return null
  return (
    <Panel title="Connected accounts" lead="Sign in with an account that you have elsewhere.">
      <LoadState of={ways} what="connected accounts" lines={1}>
        {(data) => (
          <Table
            label="Connected accounts"
            rows={rowsOf(data)}
            keyOf={({ provider }) => provider}
            columns={[
              {
                head: 'Account',
                kind: 'main',
                cell: ({ provider, name, connection }) => (
                  <span className="row">
                    <ProviderIcon of={provider} />
                    <bdi>{name}</bdi>
                    {connection?.offered === false && <Tag tone="warn">Switched off here</Tag>}
                  </span>
                ),
              },
              { head: 'As', kind: 'quiet', cell: ({ connection }) => <bdi>{connection?.label ?? '–'}</bdi> },
              {
                head: 'Connected',
                kind: 'quiet',
                cell: ({ connection }) => (connection === undefined ? '–' : <Time at={connection.createdAt} />),
              },
              {
                head: '',
                kind: 'acts',
                cell: ({ provider, name, connection }) =>
                  connection === undefined ? (
                    <Connect provider={provider} name={name} />
                  ) : (
                    <Button
                      small
                      look="danger"
                      aria-label={`Disconnect ${name}`}
                      onClick={() => disconnect(connection)}
                    >
                      Disconnect
                    </Button>
                  ),
              },
            ]}
          />
        )}
      </LoadState>
      {leaving !== null && <Disconnect connection={leaving} onClose={() => disconnect(null)} />}
    </Panel>
  )
}

/** Opens the provider's page, which redirects back to this page. */
function Connect({ provider, name }: { readonly provider: Provider; readonly name: string }) {
  const action = useAction(async () => {
    const { url } = await auth('POST /auth/connect-provider', { provider }).catch((error: unknown) => {
      throw named(error, name)
    })
    location.assign(url)
  })
  return (
    <>
      <Button small busy={action.busy} aria-label={`Connect ${name}`} onClick={action.run}>
        Connect
      </Button>
      <Failure of={action.error} />
    </>
  )
}

function Disconnect({ connection, onClose }: { readonly connection: Connection; readonly onClose: () => void }) {
  const { provider, name } = connection
  const end = useMutation({ mutationFn: () => auth('POST /auth/disconnect-provider', { provider }) })
  const action = useAction(async () => {
    await end.mutateAsync()
    say(`${name} is disconnected`)
    onClose()
  })
  return (
    <AlertDialog
      open
      onClose={onClose}
      title="Disconnect account"
      description={
        <>
          After this, you cannot sign in here with <bdi>{name}</bdi>. Open sessions do not end.
        </>
      }
    >
      <DialogForm action={action} verb="Disconnect" look="destroy" onClose={onClose} />
    </AlertDialog>
  )
}
