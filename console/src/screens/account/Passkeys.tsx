// Passkeys of the person: this device or a security key instead of the password.
import { useMutation, useQuery } from '@tanstack/react-query'
import { KeyRound, Plus } from 'lucide-react'
import { send } from '../../api/send.ts'
import { Button } from '../../parts/Button.tsx'
import { Load } from '../../parts/Load.tsx'
import { Failure } from '../../parts/Notice.tsx'
import { Panel } from '../../parts/Panel.tsx'
import { say } from '../../parts/Status.tsx'
import { Table } from '../../parts/Table.tsx'
import { Icon } from '../../parts/Icon.tsx'
import { Time } from '../../parts/Time.tsx'
import { useAction } from '../../parts/useAction.ts'
import { addPasskey } from '../sign-in/passkey.ts'

interface Passkey {
  readonly id: string
  readonly name?: string | null
  readonly createdAt: string
}

export function Passkeys() {
  const passkeys = useQuery({
    queryKey: ['passkeys'],
    queryFn: async ({ signal }): Promise<readonly Passkey[]> =>
      (await send({ method: 'GET', path: '/auth/passkey/list-user-passkeys', signal })).json(),
  })
  const add = useAction(async () => {
    await addPasskey(`Passkey of ${new Date().toISOString().slice(0, 10)}`)
    await passkeys.refetch()
    say('The passkey is added')
  })
  const remove = useMutation({
    mutationFn: (id: string) => send({ method: 'POST', path: '/auth/passkey/delete-passkey', body: { id } }),
    onSuccess: () => say('The passkey is removed'),
  })
  return (
    <Panel
      title="Passkeys"
      lead="Sign in with this device or a security key. A passkey cannot be guessed or sent to a false page."
      acts={
        <Button small icon={Plus} busy={add.busy} onClick={add.run}>
          Add passkey
        </Button>
      }
    >
      <Failure of={add.error ?? remove.error} />
      <Load of={passkeys} what="passkeys" lines={1}>
        {(data) =>
          data.length === 0 ? (
            <p className="soft">No passkey yet.</p>
          ) : (
            <Table
              label="Passkeys"
              rows={data}
              keyOf={({ id }) => id}
              columns={[
                {
                  head: 'Name',
                  kind: 'main',
                  cell: ({ name }) => (
                    <span className="row">
                      <Icon of={KeyRound} />
                      <bdi>{name ?? 'Passkey'}</bdi>
                    </span>
                  ),
                },
                { head: 'Added', kind: 'quiet', cell: ({ createdAt }) => <Time at={createdAt} /> },
                {
                  head: '',
                  kind: 'acts',
                  cell: ({ id, name }) => (
                    <Button
                      small
                      look="danger"
                      aria-label={`Remove ${name ?? 'passkey'}`}
                      onClick={() => remove.mutate(id)}
                    >
                      Remove
                    </Button>
                  ),
                },
              ]}
            />
          )
        }
      </Load>
    </Panel>
  )
}
