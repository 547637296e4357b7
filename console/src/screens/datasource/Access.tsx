// The people who may access a datasource: everyone with at least a given role, or only the owners and the selected
// people.
import { useState } from 'react'
import { useCall, useRead } from '../../api/queries.ts'
import type { Answer, Member } from '../../api/types.ts'
import { ROLE_NAMES } from '../../frame/current-team.ts'
import { Button } from '../../parts/Button.tsx'
import { Checkbox } from '../../parts/Field.tsx'
import { LoadState } from '../../parts/LoadState.tsx'
import { Failure } from '../../parts/Notice.tsx'
import { say } from '../../parts/StatusMessages.tsx'
import { Table } from '../../parts/Table.tsx'
import { Tag } from '../../parts/Tag.tsx'
import { counted } from '../../parts/format.ts'
import { useAction } from '../../parts/useAction.ts'
import { AccessChoice, type Reach } from '../datasources/AccessChoice.tsx'
import { useDatasource } from './Datasource.tsx'
import '../datasources/connect.css'

export function Access() {
  const { teamId, id } = useDatasource()
  const access = useRead('getAccess', { params: { teamId, id } })
  const members = useRead('listMembers', { params: { teamId } })
  return (
    <LoadState of={access} what="access list">
      {(list) => (
        <LoadState of={members} what="people">
          {(people) => <Form list={list} people={people.filter(isActive)} />}
        </LoadState>
      )}
    </LoadState>
  )
}

type ActiveMember = Member & { readonly accountId: string }

const isActive = (member: Member): member is ActiveMember => member.accountId !== null && member.status === 'ACTIVE'

const RANK = { MEMBER: 0, ADMIN: 1, OWNER: 2 } as const

interface FormProps {
  readonly list: Answer<'getAccess'>
  readonly people: readonly ActiveMember[]
}

function Form({ list, people }: FormProps) {
  const { teamId, id, accessMode, minRole } = useDatasource()
  const [reach, setReach] = useState<Reach>({ accessMode, minRole: minRole ?? 'MEMBER' })
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set(list.accountIds))
  const change = useCall('changeDatasource')
  const put = useCall('putAccess')
  const params = { teamId, id }
  const save = useAction(async () => {
    // Save the list first, so that the chosen list applies as soon as the mode changes.
    if (reach.accessMode === 'EXPLICIT') {
      const accountIds = people.map(({ accountId }) => accountId).filter((accountId) => chosen.has(accountId))
      await put.mutateAsync({ params, body: { accountIds } })
      await change.mutateAsync({ params, body: { accessMode: 'EXPLICIT' } })
    } else await change.mutateAsync({ params, body: reach })
    say('Access saved')
  })
  const byList = reach.accessMode === 'EXPLICIT'
  const reaches = (person: ActiveMember) =>
    byList ? person.role === 'OWNER' || chosen.has(person.accountId) : RANK[person.role] >= RANK[reach.minRole]
  const toggle = (accountId: string) => setChosen((before) => before.symmetricDifference(new Set([accountId])))
  return (
    <div className="stack access">
      <AccessChoice reach={reach} onChange={setReach} listNote="Owners always have access." />
      <Table
        label="People"
        rows={people}
        keyOf={({ accountId }) => accountId}
        columns={[
          {
            head: 'Person',
            kind: 'main',
            cell: (person) =>
              byList ? (
                <Checkbox
                  label={<bdi>{person.email}</bdi>}
                  checked={reaches(person)}
                  disabled={person.role === 'OWNER'}
                  onChange={() => toggle(person.accountId)}
                />
              ) : (
                <bdi>{person.email}</bdi>
              ),
          },
          { head: 'Name', cell: (person) => <bdi>{person.name ?? ''}</bdi> },
          { head: 'Role', kind: 'quiet', cell: (person) => ROLE_NAMES[person.role] },
          {
            head: 'Reaches it',
            cell: (person) =>
              reaches(person) ? (
                <Tag tone="ok" bare>
                  Yes
                </Tag>
              ) : (
                <Tag bare>No</Tag>
              ),
          },
        ]}
      />
      <Failure of={save.error} />
      <div className="row apart">
        <span className="tiny">
          {counted(people.filter(reaches).length, 'person reaches', 'people reach')} it, with their keys and agents.
        </span>
        <Button look="primary" busy={save.busy} onClick={save.run}>
          Save access
        </Button>
      </div>
    </div>
  )
}
