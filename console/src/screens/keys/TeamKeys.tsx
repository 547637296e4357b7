// Lists the members' API keys and agents that reach this team. A manager can end the access of a key or an agent to
// this team. Its access to other teams does not change.
import { Bot, KeyRound } from 'lucide-react'
import { useState } from 'react'
import { useCall, useRead } from '../../api/queries.ts'
import { Page } from '../../frame/Page.tsx'
import { hasRole, useTeam } from '../../frame/current-team.ts'
import { Button } from '../../parts/Button.tsx'
import { AlertDialog } from '../../parts/Dialog.tsx'
import { DialogForm } from '../../parts/DialogForm.tsx'
import { Empty } from '../../parts/Empty.tsx'
import { LoadState } from '../../parts/LoadState.tsx'
import { say } from '../../parts/StatusMessages.tsx'
import { Table } from '../../parts/Table.tsx'
import { CodeTag } from '../../parts/Tag.tsx'
import { useAction } from '../../parts/useAction.ts'
import { Expiry, LastUse } from './key-cells.tsx'
import { KeyReach } from './KeyReach.tsx'

type Ending = { readonly kind: 'key' | 'grant'; readonly id: string; readonly name: string }

export function TeamKeys() {
  const team = useTeam()
  return (
    <Page
      title="API keys of this team"
      lead="Keys and agents of members, with access to this team. Nobody can see the values of the keys."
      needs="ADMIN"
    >
      {hasRole(team, 'ADMIN') && <Lists teamId={team.id} />}
    </Page>
  )
}

function Lists({ teamId }: { readonly teamId: string }) {
  const keys = useRead('listTeamKeys', { params: { teamId } })
  const grants = useRead('listTeamGrants', { params: { teamId } })
  const [ending, setEnding] = useState<Ending | null>(null)
  const end = (kind: Ending['kind'], id: string, name: string) => (
    <Button small look="danger" onClick={() => setEnding({ kind, id, name })}>
      <span>
        End <bdi className="hidden-words">{name} </bdi>here
      </span>
    </Button>
  )
  return (
    <>
      <LoadState of={keys} what="API keys">
        {(data) =>
          data.length === 0 ? (
            <Empty icon={KeyRound} title="No key reaches this team">
              Members create keys under API keys. A key can read what its owner can read.
            </Empty>
          ) : (
            <Table
              label="API keys"
              rows={data}
              keyOf={({ id }) => id}
              columns={[
                { head: 'Name', kind: 'main', cell: ({ name }) => <bdi>{name}</bdi> },
                { head: 'Key', cell: ({ hint }) => <CodeTag>…{hint.replace(/^[.…]+/, '')}</CodeTag> },
                { head: 'Of', kind: 'quiet', cell: ({ email }) => <bdi>{email}</bdi> },
                {
                  head: 'Reaches',
                  kind: 'quiet',
                  cell: (key) => <KeyReach of={key} all="everything its owner reaches" />,
                },
                { head: 'Last used', kind: 'quiet', cell: (key) => <LastUse of={key} /> },
                { head: 'Expires', kind: 'quiet', cell: (key) => <Expiry of={key} /> },
                { head: '', kind: 'acts', cell: ({ id, name }) => end('key', id, name) },
              ]}
            />
          )
        }
      </LoadState>
      <section className="stack close" aria-label="Connected agents">
        <h2>Connected agents</h2>
        <LoadState of={grants} what="connected agents" lines={2}>
          {(data) =>
            data.length === 0 ? (
              <Empty icon={Bot} title="No agent reaches this team" />
            ) : (
              <Table
                label="Connected agents"
                rows={data}
                keyOf={({ id }) => id}
                columns={[
                  { head: 'Agent', kind: 'main', cell: ({ clientName }) => <bdi>{clientName}</bdi> },
                  { head: 'From', kind: 'quiet', cell: ({ clientHost }) => <bdi>{clientHost}</bdi> },
                  { head: 'For', kind: 'quiet', cell: ({ email }) => <bdi>{email}</bdi> },
                  { head: 'Last used', kind: 'quiet', cell: (grant) => <LastUse of={grant} /> },
                  { head: '', kind: 'acts', cell: ({ id, clientName }) => end('grant', id, clientName) },
                ]}
              />
            )
          }
        </LoadState>
      </section>
      {ending !== null && <EndHere teamId={teamId} ending={ending} onClose={() => setEnding(null)} />}
    </>
  )
}

function EndHere({
  teamId,
  ending,
  onClose,
}: {
  readonly teamId: string
  readonly ending: Ending
  readonly onClose: () => void
}) {
  const { kind, id, name } = ending
  const endKey = useCall('endTeamForKey')
  const endGrant = useCall('endTeamForGrant')
  const action = useAction(async () => {
    if (kind === 'key') await endKey.mutateAsync({ params: { teamId, keyId: id } })
    else await endGrant.mutateAsync({ params: { teamId, grantId: id } })
    say(`Ended ${name} here`)
    onClose()
  })
  return (
    <AlertDialog
      open
      onClose={onClose}
      title={`End ${name} here`}
      description="It is refused in this team from the next request on. Its access to other teams does not change."
    >
      <DialogForm action={action} verb="End here" look="destroy" onClose={onClose} />
    </AlertDialog>
  )
}
