import { useNavigate, useSearch } from '@tanstack/react-router'
import { UserPlus } from 'lucide-react'
import { useState } from 'react'
import { useCall, useRead } from '../../api/queries.ts'
import type { Member, Role, Team } from '../../api/types.ts'
import { Page } from '../../frame/Page.tsx'
import { hasRole, ROLE_NAMES, useTeam } from '../../frame/current-team.ts'
import { Button, IconButton } from '../../parts/Button.tsx'
import { AlertDialog } from '../../parts/Dialog.tsx'
import { DialogForm } from '../../parts/DialogForm.tsx'
import { LoadState } from '../../parts/LoadState.tsx'
import { Failure } from '../../parts/Notice.tsx'
import { Select } from '../../parts/Select.tsx'
import { say } from '../../parts/StatusMessages.tsx'
import { Table } from '../../parts/Table.tsx'
import { Tag } from '../../parts/Tag.tsx'
import { ago, counted } from '../../parts/format.ts'
import { Time } from '../../parts/Time.tsx'
import { useAction } from '../../parts/useAction.ts'
import { X } from 'lucide-react'
import { InviteMember } from './InviteMember.tsx'
import { rolesUpTo } from './roles.ts'

export function Members() {
  const team = useTeam()
  const { invite } = useSearch({ strict: false })
  const navigate = useNavigate()
  const isAdmin = hasRole(team, 'ADMIN')
  const [inviting, setInviting] = useState(invite !== undefined)
  const members = useRead('listMembers', { params: { teamId: team.id } })
  const close = () => {
    setInviting(false)
    if (invite !== undefined) void navigate({ to: '/t/$team/members', params: { team: team.slug }, replace: true })
  }
  return (
    <Page
      title="Members"
      lead={members.data === undefined ? 'Who belongs to this team.' : summary(members.data)}
      acts={
        isAdmin && (
          <Button look="primary" icon={UserPlus} onClick={() => setInviting(true)}>
            Invite a colleague
          </Button>
        )
      }
    >
      <LoadState of={members} what="members">
        {(data) => <List team={team} members={data} />}
      </LoadState>
      {isAdmin && <InviteMember open={inviting} team={team} onClose={close} />}
    </Page>
  )
}

function summary(members: readonly Member[]): string {
  const invited = members.filter(({ status }) => status === 'INVITED').length
  const active = counted(members.length - invited, 'member')
  return invited === 0 ? active : `${active} · ${counted(invited, 'invitation')} not accepted yet`
}

const initial = ({ name, email }: Member) => [...(name ?? email)][0]?.toUpperCase() ?? '?'

function List({ team, members }: { readonly team: Team; readonly members: readonly Member[] }) {
  const me = useRead('getAccount', {}).data?.id
  const [leaving, setLeaving] = useState<Member | null>(null)
  const isAdmin = hasRole(team, 'ADMIN')
  return (
    <>
      <Table
        label="Members"
        rows={members}
        keyOf={({ accountId, invitationId }) => accountId ?? invitationId ?? ''}
        columns={[
          {
            head: 'Person',
            kind: 'main',
            cell: (member) => (
              <span className="person">
                <span className="avatar" aria-hidden>
                  {initial(member)}
                </span>
                <span className="person-words">
                  <bdi className="cut">{member.name ?? member.email}</bdi>
                  {member.name !== null && <bdi className="tiny cut">{member.email}</bdi>}
                </span>
                {member.accountId === me && <Tag>you</Tag>}
              </span>
            ),
          },
          { head: 'Role', cell: (member) => <RoleOf team={team} member={member} isMe={member.accountId === me} /> },
          { head: 'Status', cell: (member) => <StatusOf member={member} /> },
          { head: 'Since', kind: 'quiet', cell: ({ createdAt }) => <Time at={createdAt} /> },
          {
            head: '',
            kind: 'acts',
            cell: (member) =>
              isAdmin &&
              member.accountId !== me &&
              hasRole(team, member.role) && (
                <IconButton
                  icon={X}
                  small
                  label={
                    member.accountId === null ? `Take back invitation of ${member.email}` : `Remove ${member.email}`
                  }
                  onClick={() => setLeaving(member)}
                />
              ),
          },
        ]}
      />
      <Removal team={team} member={leaving} onClose={() => setLeaving(null)} />
    </>
  )
}

function StatusOf({ member }: { readonly member: Member }) {
  if (member.status === 'ACTIVE') return <span className="soft">Active</span>
  return (
    <span className="row">
      <Tag tone="warn">Invited</Tag>
      {member.expiresAt !== undefined && <span className="tiny">ends {ago(member.expiresAt)}</span>}
    </span>
  )
}

/**
 * Shows the role. Admins and owners get a menu, except for their own role, for a role above theirs, and for an
 * invitation. Nobody can grant a role above their own.
 */
function RoleOf({ team, member, isMe }: { readonly team: Team; readonly member: Member; readonly isMe: boolean }) {
  const change = useCall('changeMember')
  const { accountId, email, role } = member
  if (accountId === null || isMe || !hasRole(team, 'ADMIN') || !hasRole(team, role))
    return <span className="soft">{ROLE_NAMES[role]}</span>
  const choose = (next: Role) =>
    change.mutate(
      { params: { teamId: team.id, accountId }, body: { role: next } },
      { onSuccess: () => say(`${email} is ${ROLE_NAMES[next].toLowerCase()} now`) },
    )
  return (
    <span className="stack close">
      <Select
        bare
        label={`Role of ${email}`}
        value={change.isPending ? change.variables.body.role : role}
        options={rolesUpTo(team.role)}
        onChange={choose}
        disabled={change.isPending}
      />
      <Failure of={change.error} />
    </span>
  )
}

function Removal({
  team,
  member,
  onClose,
}: {
  readonly team: Team
  readonly member: Member | null
  readonly onClose: () => void
}) {
  const remove = useCall('removeMember')
  const takeBack = useCall('removeInvitation')
  const action = useAction(async () => {
    if (member === null) return
    const { accountId, invitationId, email } = member
    if (accountId !== null) await remove.mutateAsync({ params: { teamId: team.id, accountId } })
    else if (invitationId !== undefined) await takeBack.mutateAsync({ params: { teamId: team.id, invitationId } })
    say(accountId === null ? `Took back the invitation of ${email}` : `Removed ${email}`)
    onClose()
  })
  const isInvitation = member?.accountId === null
  const close = () => {
    action.clear()
    onClose()
  }
  return (
    <AlertDialog
      open={member !== null}
      onClose={close}
      title={isInvitation ? 'Take back invitation' : 'Remove member'}
      description={
        isInvitation ? (
          <>
            The link of <bdi>{member?.email}</bdi> stops working.
          </>
        ) : (
          <>
            <bdi>{member?.email}</bdi> and this person’s keys have no access to this team from the next request on.
          </>
        )
      }
    >
      <DialogForm action={action} verb={isInvitation ? 'Take back' : 'Remove'} look="destroy" onClose={close} />
    </AlertDialog>
  )
}
