// The people who may access a datasource: everyone with at least a given role, or only the owners and the people on a
// list.
import { Group, Radio } from '../../parts/Field.tsx'
import { Select } from '../../parts/Select.tsx'
import type { Role } from '../../api/types.ts'

export interface Reach {
  readonly accessMode: 'ROLE_BASED' | 'EXPLICIT'
  readonly minRole: Role
}

const ROLES = [
  { value: 'MEMBER', label: 'Member' },
  { value: 'ADMIN', label: 'Admin' },
  { value: 'OWNER', label: 'Owner' },
] as const

interface AccessChoiceProps {
  readonly reach: Reach
  readonly onChange: (reach: Reach) => void
  readonly listNote?: string
}

export function AccessChoice({ reach, onChange, listNote }: AccessChoiceProps) {
  const byRole = reach.accessMode === 'ROLE_BASED'
  return (
    <Group label="Who may reach it" role="radiogroup">
      <div className="row">
        <Radio
          name="reach"
          label="Everyone from"
          checked={byRole}
          onChange={() => onChange({ ...reach, accessMode: 'ROLE_BASED' })}
        />
        <Select
          label="From role"
          bare
          options={ROLES}
          value={reach.minRole}
          disabled={!byRole}
          onChange={(minRole) => onChange({ ...reach, minRole })}
        />
      </div>
      <Radio
        name="reach"
        label="Only people on a list"
        note={listNote}
        checked={!byRole}
        onChange={() => onChange({ ...reach, accessMode: 'EXPLICIT' })}
      />
    </Group>
  )
}
