// The page of an invitation link: the inviter, the team, and the role.
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useParams } from '@tanstack/react-router'
import { call } from '../../api/client.ts'
import { isStatus } from '../../api/failure.ts'
import { queryClient } from '../../api/queries.ts'
import { hasSession, signOut } from '../../api/session.ts'
import type { Account, Invitation } from '../../api/types.ts'
import { CardPage } from '../../frame/CardPage.tsx'
import { ROLE_NAMES } from '../../frame/current-team.ts'
import { Button, LinkButton } from '../../parts/Button.tsx'
import { Loading, LoadFailed } from '../../parts/LoadState.tsx'
import { Failure, Notice } from '../../parts/Notice.tsx'
import { day } from '../../parts/format.ts'
import { useAction } from '../../parts/useAction.ts'
import { useInvitation } from './invitation.ts'

export function InvitationPage() {
  const { token = '' } = useParams({ strict: false })
  const invitation = useInvitation(token)
  const account = useQuery({
    queryKey: ['invited account'],
    queryFn: async ({ signal }): Promise<Account | null> =>
      (await hasSession()) ? await call('getAccount', {}, signal) : null,
  })
  if (invitation.error !== null) return <NotValid error={invitation.error} onRetry={() => void invitation.refetch()} />
  if (invitation.data === undefined || account.data === undefined)
    return (
      <CardPage title="Join">
        <Loading what="invitation" lines={2} />
      </CardPage>
    )
  return <Offer invitation={invitation.data} account={account.data} token={token} />
}

function NotValid({ error, onRetry }: { readonly error: unknown; readonly onRetry: () => void }) {
  if (!isStatus(error, 404))
    return (
      <CardPage title="Join">
        <LoadFailed what="invitation" error={error} onRetry={onRetry} />
      </CardPage>
    )
  return (
    <CardPage
      title="Nothing here"
      lead="The invitation was used, taken back, or is older than 14 days. Ask for a new one."
    >
      <LinkButton to="/" wide>
        Go to the start
      </LinkButton>
    </CardPage>
  )
}

interface OfferProps {
  readonly invitation: Invitation
  readonly account: Account | null
  readonly token: string
}

function Offer({ invitation, account, token }: OfferProps) {
  const { team, role, email, invitedBy, expiresAt } = invitation
  return (
    <CardPage
      title={`Join ${team}`}
      lead={
        <>
          <bdi>{invitedBy ?? 'Somebody'}</bdi> invites you to <bdi>{team}</bdi> as {ROLE_NAMES[role].toLowerCase()}.
        </>
      }
    >
      {account === null ? (
        <div className="stack close">
          <LinkButton to="/sign-up" search={{ invite: token }} look="primary" wide>
            Create account
          </LinkButton>
          <LinkButton to="/sign-in" search={{ next: `/app/invite/${token}` }} wide>
            Sign in
          </LinkButton>
        </div>
      ) : account.email.toLowerCase() === email.toLowerCase() ? (
        <Accept token={token} />
      ) : (
        <>
          <Notice tone="bad">
            This invitation is for <bdi>{email}</bdi>. You are signed in as <bdi>{account.email}</bdi>.
          </Notice>
          <Button wide onClick={() => void signOut()}>
            Sign out
          </Button>
        </>
      )}
      <p className="tiny">
        For <bdi>{email}</bdi> only, until {day(expiresAt)}.
      </p>
    </CardPage>
  )
}

function Accept({ token }: { readonly token: string }) {
  const navigate = useNavigate()
  const action = useAction(async () => {
    const { id, slug, status } = await call('acceptInvitation', { params: { inviteToken: token } })
    if (status === 'INVITED') await call('openTeam', { params: { teamId: id } })
    await queryClient.invalidateQueries()
    await navigate({ to: '/t/$team/playground', params: { team: slug } })
  })
  return (
    <>
      <Failure of={action.error} />
      <Button look="primary" wide busy={action.busy} onClick={action.run}>
        Accept invitation
      </Button>
    </>
  )
}
