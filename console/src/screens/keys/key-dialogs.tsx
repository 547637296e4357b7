import { useState } from 'react'
import { useCall } from '../../api/queries.ts'
import type { ApiKey } from '../../api/types.ts'
import { DialogForm, TypedConfirmation } from '../../parts/DialogForm.tsx'
import { AlertDialog, Dialog } from '../../parts/Dialog.tsx'
import { TextField } from '../../parts/Field.tsx'
import { Select } from '../../parts/Select.tsx'
import { say } from '../../parts/StatusMessages.tsx'
import { useAction } from '../../parts/useAction.ts'
import { useForm } from '../../parts/useForm.ts'
import { EXPIRIES, expiryAt, type Expires } from './expiries.ts'
import type { Fresh } from './FreshKey.tsx'

interface KeyDialogProps {
  readonly of: ApiKey
  readonly onClose: () => void
}

type NewEnd = Expires | 'keep'

export function RenameKey({ of, onClose }: KeyDialogProps) {
  const { form, field } = useForm({ name: of.name })
  const [expires, setExpires] = useState<NewEnd>('keep')
  const change = useCall('changeKey')
  const action = useAction(async () => {
    const end = expires === 'keep' ? {} : { expiresAt: expiryAt(expires) }
    await change.mutateAsync({ params: { keyId: of.id }, body: { name: form.name, ...end } })
    say('Saved')
    onClose()
  })
  return (
    <Dialog open onClose={onClose} title="Rename key">
      <DialogForm action={action} verb="Save" onClose={onClose}>
        <TextField label="Name" required maxLength={100} autoComplete="off" {...field('name')} />
        <Select<NewEnd>
          label="Expires"
          value={expires}
          options={[{ value: 'keep', label: 'Unchanged' }, ...EXPIRIES]}
          onChange={setExpires}
        />
      </DialogForm>
    </Dialog>
  )
}

const GRACES = [
  { value: '0', label: 'Not at all' },
  { value: '300', label: '5 minutes' },
  { value: '3600', label: '1 hour' },
  { value: '86400', label: '1 day' },
] as const

export function RotateKey({ of, onClose, onFresh }: KeyDialogProps & { readonly onFresh: (fresh: Fresh) => void }) {
  const [grace, setGrace] = useState<(typeof GRACES)[number]['value']>('3600')
  const rotate = useCall('rotateKey')
  const action = useAction(async () => {
    const made = await rotate.mutateAsync({ params: { keyId: of.id }, body: { graceSeconds: Number(grace) } })
    onClose()
    onFresh({
      key: made.key,
      name: made.name,
      teamId: made.teamIds?.[0] ?? null,
      datasourceId: made.datasourceIds?.[0] ?? null,
    })
  })
  return (
    <Dialog
      open
      onClose={onClose}
      title="Rotate key"
      description={
        <>
          <bdi>{of.name}</bdi> gets a new value. Scopes, teams and datasources stay.
        </>
      }
    >
      <DialogForm action={action} verb="Rotate key" onClose={onClose}>
        <Select label="Old value works for" value={grace} options={GRACES} onChange={setGrace} />
      </DialogForm>
    </Dialog>
  )
}

export function RevokeKey({ of, onClose }: KeyDialogProps) {
  const revoke = useCall('revokeKey')
  const action = useAction(async () => {
    await revoke.mutateAsync({ params: { keyId: of.id } })
    say(`Revoked ${of.name}`)
    onClose()
  })
  return (
    <AlertDialog
      open
      onClose={onClose}
      title="Revoke key"
      description={
        <>
          <bdi>{of.name}</bdi> is refused from the next request on. This cannot be undone.
        </>
      }
    >
      <TypedConfirmation name={of.name} verb="Revoke key" action={action} onClose={onClose} />
    </AlertDialog>
  )
}

export function EndGrant({
  id,
  name,
  onClose,
}: {
  readonly id: string
  readonly name: string
  readonly onClose: () => void
}) {
  const end = useCall('endGrant')
  const action = useAction(async () => {
    await end.mutateAsync({ params: { grantId: id } })
    say(`Ended the access of ${name}`)
    onClose()
  })
  return (
    <AlertDialog
      open
      onClose={onClose}
      title="End access"
      description={
        <>
          <bdi>{name}</bdi> is refused from the next request on. It can ask you again.
        </>
      }
    >
      <DialogForm action={action} verb="End access" look="destroy" onClose={onClose} />
    </AlertDialog>
  )
}
