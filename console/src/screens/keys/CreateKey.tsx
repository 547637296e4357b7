// Creates a key. The person chooses its scopes, its teams and datasources, and its expiry.
import { useState } from 'react'
import { useCall, useRead } from '../../api/queries.ts'
import type { Scope } from '../../api/types.ts'
import { DialogForm } from '../../parts/DialogForm.tsx'
import { Dialog } from '../../parts/Dialog.tsx'
import { Checkbox, Group, TextField } from '../../parts/Field.tsx'
import { Select } from '../../parts/Select.tsx'
import { useAction } from '../../parts/useAction.ts'
import { useForm } from '../../parts/useForm.ts'
import { EXPIRIES, expiryAt, type Expires } from './expiries.ts'
import type { Fresh } from './FreshKey.tsx'

interface CreateKeyProps {
  readonly open: boolean
  readonly onClose: () => void
  readonly onFresh: (fresh: Fresh) => void
}

export function CreateKey({ open, onClose, onFresh }: CreateKeyProps) {
  return (
    <Dialog open={open} onClose={onClose} title="New API key">
      <Form onClose={onClose} onFresh={onFresh} />
    </Dialog>
  )
}

const SCOPES: readonly (readonly [Scope, string])[] = [
  ['profile', 'Your name and e-mail address'],
  ['data:schema', 'Teams, datasources, and the tables and columns that are shown'],
  ['data:read', 'Run queries'],
]

const ALL = 'all'

function Form({ onClose, onFresh }: Omit<CreateKeyProps, 'open'>) {
  const { form, field } = useForm({ name: '' })
  const [scopes, setScopes] = useState<ReadonlySet<Scope>>(new Set(['data:schema', 'data:read']))
  const [team, setTeam] = useState(ALL)
  const [datasource, setDatasource] = useState(ALL)
  const [expires, setExpires] = useState<Expires>('90')
  const teams = (useRead('listTeams', {}).data ?? []).filter(({ status }) => status === 'ACTIVE')
  const datasources = useRead('listDatasources', { params: { teamId: team } }, { enabled: team !== ALL }).data ?? []
  const create = useCall('createKey')
  const action = useAction(async () => {
    const expiresAt = expiryAt(expires)
    const made = await create.mutateAsync({
      body: {
        name: form.name,
        scopes: SCOPES.map(([scope]) => scope).filter((scope) => scopes.has(scope)),
        ...(team === ALL ? {} : { teamIds: [team] }),
        ...(datasource === ALL ? {} : { datasourceIds: [datasource] }),
        ...(expiresAt === null ? {} : { expiresAt }),
      },
    })
    onFresh({
      key: made.key,
      name: made.name,
      teamId: team === ALL ? null : team,
      datasourceId: datasource === ALL ? null : datasource,
    })
  })
  return (
    <DialogForm action={action} verb="Create key" disabled={scopes.size === 0} onClose={onClose}>
      <TextField
        label="Name"
        required
        maxLength={100}
        autoComplete="off"
        placeholder="nightly report"
        note="For example the program that will use the key."
        {...field('name')}
      />
      <Group label="Scopes">
        {SCOPES.map(([scope, note]) => (
          <Checkbox
            key={scope}
            label={scope}
            note={note}
            checked={scopes.has(scope)}
            onChange={() => setScopes(scopes.symmetricDifference(new Set([scope])))}
          />
        ))}
      </Group>
      <div className="columns-2">
        <Select
          label="Teams"
          value={team}
          options={[{ value: ALL, label: 'All' }, ...teams.map(({ id, name }) => ({ value: id, label: name }))]}
          onChange={(next) => {
            setTeam(next)
            setDatasource(ALL)
          }}
        />
        <Select
          label="Datasources"
          value={datasource}
          disabled={team === ALL}
          options={[{ value: ALL, label: 'All' }, ...datasources.map(({ id, name }) => ({ value: id, label: name }))]}
          onChange={setDatasource}
        />
      </div>
      <Select label="Expires" value={expires} options={EXPIRIES} onChange={setExpires} />
    </DialogForm>
  )
}
