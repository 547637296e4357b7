// Invites a person by e-mail address, and then shows the link once, because the service may be unable to send mail.
import { useState } from 'react'
import { useCall, useRead } from '../../api/queries.ts'
import type { Role, Team } from '../../api/types.ts'
import { DialogForm } from '../../parts/DialogForm.tsx'
import { Button } from '../../parts/Button.tsx'
import { CopyField } from '../../parts/CopyField.tsx'
import { Dialog } from '../../parts/Dialog.tsx'
import { TextField } from '../../parts/Field.tsx'
import { Select } from '../../parts/Select.tsx'
import { useAction } from '../../parts/useAction.ts'
import { useForm } from '../../parts/useForm.ts'
import { rolesUpTo } from './roles.ts'

interface Made {
  readonly email: string
  readonly link: string
}

export function InviteMember({
  open,
  team,
  onClose,
}: {
  readonly open: boolean
  readonly team: Team
  readonly onClose: () => void
}) {
  const [made, setMade] = useState<Made | null>(null)
  const close = () => {
    setMade(null)
    onClose()
  }
  return (
    <>
      <Dialog open={open && made === null} onClose={close} title="Invite a colleague">
        <Ask team={team} onClose={close} onMade={setMade} />
      </Dialog>
      <Dialog
        open={open && made !== null}
        onClose={close}
        title="Invitation made"
        description={
          <>
            Valid for 14 days, for <bdi>{made?.email}</bdi> only.
          </>
        }
        foot={<Button onClick={close}>Done</Button>}
      >
        <CopyField label="Invitation link" value={made?.link ?? ''} verb="Copy link" />
        <MailNote />
      </Dialog>
    </>
  )
}

function MailNote() {
  const instance = useRead('getInstance', {}).data
  if (instance === undefined) return null
  return (
    <p className="tiny">
      {instance.mail ? 'The link was also sent by mail.' : 'This service sends no mail. Send the link yourself.'}
    </p>
  )
}

function Ask({
  team,
  onClose,
  onMade,
}: {
  readonly team: Team
  readonly onClose: () => void
  readonly onMade: (made: Made) => void
}) {
  const { form, field } = useForm({ email: '' })
  const [role, setRole] = useState<Role>('MEMBER')
  const add = useCall('addMember')
  const action = useAction(async () => {
    const { email, inviteToken } = await add.mutateAsync({
      params: { teamId: team.id },
      body: { email: form.email.trim(), role },
    })
    onMade({ email, link: `${location.origin}/app/invite/${inviteToken}` })
  })
  return (
    <DialogForm action={action} verb="Send invitation" onClose={onClose}>
      <div className="columns-2">
        <TextField
          label="Email"
          type="email"
          required
          autoComplete="off"
          placeholder="bo@example.com"
          {...field('email')}
        />
        <Select label="Role" value={role} options={rolesUpTo(team.role)} onChange={setRole} note={ROLE_NOTES[role]} />
      </div>
    </DialogForm>
  )
}

const ROLE_NOTES: Readonly<Record<Role, string>> = {
  MEMBER: 'Can query what is shown.',
  ADMIN: 'Can also connect databases, choose what is shown, and read the audit.',
  OWNER: 'Can also appoint owners and delete the team.',
}
