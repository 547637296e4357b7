// The person's name, theme and keyboard shortcuts, and the deletion of the account.
import { useState } from 'react'
import { useCall, useRead } from '../../api/queries.ts'
import { end } from '../../api/session.ts'
import type { Account } from '../../api/types.ts'
import { setShortcuts, useShortcuts } from '../../frame/keyboard-shortcuts.ts'
import { Page } from '../../frame/Page.tsx'
import { chooseTheme, useTheme, type Theme } from '../../frame/theme.ts'
import { TypedConfirmation } from '../../parts/DialogForm.tsx'
import { Button } from '../../parts/Button.tsx'
import { AlertDialog } from '../../parts/Dialog.tsx'
import { Checkbox, TextField } from '../../parts/Field.tsx'
import { LoadState } from '../../parts/LoadState.tsx'
import { Failure } from '../../parts/Notice.tsx'
import { Panel } from '../../parts/Panel.tsx'
import { Select } from '../../parts/Select.tsx'
import { say } from '../../parts/StatusMessages.tsx'
import { useAction } from '../../parts/useAction.ts'
import { submitting, useForm } from '../../parts/useForm.ts'

const THEMES: readonly { readonly value: Theme; readonly label: string }[] = [
  { value: 'system', label: 'System' },
  { value: 'light', label: 'Light' },
  { value: 'dark', label: 'Dark' },
]

export function Profile() {
  const account = useRead('getAccount', {})
  const theme = useTheme()
  const shortcuts = useShortcuts()
  return (
    <Page title="Profile" lead="Your account, and the look of this console in this browser." width="narrow">
      <LoadState of={account} what="profile">
        {(data) => <NameForm key={data.id} account={data} />}
      </LoadState>
      <Panel title="This browser">
        <div className="columns-2">
          <Select label="Theme" value={theme} options={THEMES} onChange={chooseTheme} />
        </div>
        <Checkbox
          label="Single-key shortcuts"
          note="For example G then D for Datasources. Press ? for all keys."
          checked={shortcuts}
          onChange={(event) => setShortcuts(event.target.checked)}
        />
      </Panel>
      <LoadState of={account} what="profile" lines={1}>
        {(data) => <Danger email={data.email} />}
      </LoadState>
    </Page>
  )
}

function NameForm({ account }: { readonly account: Account }) {
  const { form, field } = useForm({ name: account.name })
  const change = useCall('changeAccount')
  const action = useAction(async () => {
    await change.mutateAsync({ body: { name: form.name } })
    say('Saved')
  })
  return (
    <Panel title="You">
      <form className="stack" onSubmit={submitting(action.run)}>
        <div className="columns-2">
          <TextField label="Name" required maxLength={100} autoComplete="name" {...field('name')} />
          <TextField label="Email" readOnly value={account.email} note="The address cannot be changed." />
        </div>
        <Failure of={action.error} />
        <div>
          <Button type="submit" look="primary" busy={action.busy} disabled={form.name === account.name}>
            Save
          </Button>
        </div>
      </form>
    </Panel>
  )
}

function Danger({ email }: { readonly email: string }) {
  const [open, setOpen] = useState(false)
  return (
    <Panel
      title="Delete account"
      danger
      lead="Your keys and the access of your agents end. Your actions stay in the audit."
    >
      <div>
        <Button look="danger" onClick={() => setOpen(true)}>
          Delete account
        </Button>
      </div>
      {open && <Deletion email={email} onClose={() => setOpen(false)} />}
    </Panel>
  )
}

function Deletion({ email, onClose }: { readonly email: string; readonly onClose: () => void }) {
  const remove = useCall('deleteAccount', { changes: false })
  const action = useAction(async () => {
    await remove.mutateAsync({ body: { confirm: email } })
    end()
    location.assign('/app/sign-in')
  })
  return (
    <AlertDialog open onClose={onClose} title="Delete account" description="This cannot be undone.">
      <TypedConfirmation name={email} verb="Delete account" action={action} onClose={onClose} />
    </AlertDialog>
  )
}
