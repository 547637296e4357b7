// The person's passkeys: a device or a security key that replaces the password.
import { useMutation, type UseQueryResult } from '@tanstack/react-query'
import { KeyRound, Pencil, Plus } from 'lucide-react'
import { useState } from 'react'
import { auth } from '../../api/client.ts'
import type { AuthAnswer } from '../../api/types.ts'
import { Button, IconButton } from '../../parts/Button.tsx'
import { AlertDialog, Dialog } from '../../parts/Dialog.tsx'
import { DialogForm } from '../../parts/DialogForm.tsx'
import { TextField } from '../../parts/Field.tsx'
import { Icon } from '../../parts/Icon.tsx'
import { LoadState } from '../../parts/LoadState.tsx'
import { Failure } from '../../parts/Notice.tsx'
import { Panel } from '../../parts/Panel.tsx'
import { say } from '../../parts/StatusMessages.tsx'
import { Table } from '../../parts/Table.tsx'
import { Tag } from '../../parts/Tag.tsx'
import { Time } from '../../parts/Time.tsx'
import { useAction } from '../../parts/useAction.ts'
import { useForm } from '../../parts/useForm.ts'
import { addPasskey } from '../sign-in/passkey.ts'
import { browserName } from './browser-name.ts'

export type Ways = AuthAnswer<'GET /auth/sign-in-methods'>
type Passkey = Ways['passkeys'][number]

interface PasskeysProps {
  readonly ways: UseQueryResult<Ways>
  /** Whether passkeys work under the host name in the address. */
  readonly works: boolean
}

export function Passkeys({ ways, works }: PasskeysProps) {
  const [asked, ask] = useState<{ readonly what: 'rename' | 'remove'; readonly passkey: Passkey } | null>(null)
  const add = useAction(async () => {
    const names = ways.data?.passkeys.map(({ name }) => name) ?? []
    await addPasskey(unused(browserName(navigator.userAgent), names))
    await ways.refetch()
    say('The passkey is added')
  })
  return (
    <Panel
      title="Passkeys"
      lead="Sign in with this device or a security key. A passkey cannot be guessed, and a forged page cannot use it."
      acts={
        <Button small icon={Plus} busy={add.busy} disabled={!works} onClick={add.run}>
          Add passkey
        </Button>
      }
    >
      <Failure of={add.error} />
      {!works && <NotHere />}
      <LoadState of={ways} what="passkeys" lines={1}>
        {({ passkeys }) =>
          passkeys.length === 0 ? (
            works && <p className="soft">No passkey yet.</p>
          ) : (
            <List passkeys={passkeys} ask={ask} />
          )
        }
      </LoadState>
      {asked?.what === 'rename' && <Rename passkey={asked.passkey} onClose={() => ask(null)} />}
      {asked?.what === 'remove' && <Remove passkey={asked.passkey} onClose={() => ask(null)} />}
    </Panel>
  )
}

/** If the name is already used, appends a number, for example `Chrome on Linux 2`. */
function unused(name: string, taken: readonly string[]): string {
  for (let n = 1; ; n++) {
    const candidate = n === 1 ? name : `${name} ${n}`
    if (!taken.includes(candidate)) return candidate
  }
}

/** Explains that passkeys do not work at this address. On the person's own machine, they work only at localhost. */
function NotHere() {
  const isLocal = /^(127\.|\[::1\])/.test(location.hostname)
  const there = `${location.protocol}//localhost:${location.port}/app/settings/security`
  return (
    <p className="soft">
      {isLocal ? (
        <>
          A passkey needs a host name. Open this page as <a href={there}>localhost</a> to add one.
        </>
      ) : (
        'A passkey needs a host name and HTTPS. The operator sets them up with VITRINE_PUBLIC_URL.'
      )}
    </p>
  )
}

function List({
  passkeys,
  ask,
}: {
  readonly passkeys: readonly Passkey[]
  readonly ask: (asked: { readonly what: 'rename' | 'remove'; readonly passkey: Passkey }) => void
}) {
  return (
    <Table
      label="Passkeys"
      rows={passkeys}
      keyOf={({ id }) => id}
      columns={[
        {
          head: 'Name',
          kind: 'main',
          cell: ({ name, synced }) => (
            <span className="row">
              <Icon of={KeyRound} />
              <bdi>{name}</bdi>
              {synced && <Tag>Synced</Tag>}
            </span>
          ),
        },
        { head: 'Added', kind: 'quiet', cell: ({ createdAt }) => <Time at={createdAt} /> },
        {
          head: 'Last used',
          kind: 'quiet',
          cell: ({ lastUsedAt }) => (lastUsedAt === null ? 'never' : <Time at={lastUsedAt} />),
        },
        {
          head: '',
          kind: 'acts',
          cell: (passkey) => (
            <span className="row">
              <IconButton
                small
                icon={Pencil}
                label={`Rename ${passkey.name}`}
                onClick={() => ask({ what: 'rename', passkey })}
              />
              <Button
                small
                look="danger"
                aria-label={`Remove ${passkey.name}`}
                onClick={() => ask({ what: 'remove', passkey })}
              >
                Remove
              </Button>
            </span>
          ),
        },
      ]}
    />
  )
}

interface StepProps {
  readonly passkey: Passkey
  readonly onClose: () => void
}

function Rename({ passkey, onClose }: StepProps) {
  const { form, field } = useForm({ name: passkey.name })
  const rename = useMutation({
    mutationFn: () => auth('POST /auth/passkey/rename', { id: passkey.id, name: form.name }),
  })
  const action = useAction(async () => {
    await rename.mutateAsync()
    say('Saved')
    onClose()
  })
  return (
    <Dialog open onClose={onClose} title="Rename passkey">
      <DialogForm action={action} verb="Save" disabled={form.name.trim() === ''} onClose={onClose}>
        <TextField label="Name" required autoFocus maxLength={100} {...field('name')} />
      </DialogForm>
    </Dialog>
  )
}

function Remove({ passkey, onClose }: StepProps) {
  const remove = useMutation({ mutationFn: () => auth('POST /auth/passkey/remove', { id: passkey.id }) })
  const action = useAction(async () => {
    await remove.mutateAsync()
    say('The passkey is removed')
    onClose()
  })
  return (
    <AlertDialog
      open
      onClose={onClose}
      title="Remove passkey"
      description={
        <>
          After this, you cannot sign in with <bdi>{passkey.name}</bdi>. Also delete the passkey on the device yourself.
        </>
      }
    >
      <DialogForm action={action} verb="Remove passkey" look="destroy" onClose={onClose} />
    </AlertDialog>
  )
}
