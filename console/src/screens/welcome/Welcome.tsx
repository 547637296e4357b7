// The page for a person who has no team or wants another team. Creates a team, and shows pending invitations.
import { useNavigate } from '@tanstack/react-router'
import { call } from '../../api/client.ts'
import { queryClient, useCall, useRead } from '../../api/queries.ts'
import { signOut } from '../../api/session.ts'
import type { Team } from '../../api/types.ts'
import { CardPage } from '../../frame/CardPage.tsx'
import { ROLE_NAMES } from '../../frame/current-team.ts'
import { Button, LinkButton } from '../../parts/Button.tsx'
import { TextField } from '../../parts/Field.tsx'
import { Failure } from '../../parts/Notice.tsx'
import { useAction } from '../../parts/useAction.ts'
import { submitting, useForm } from '../../parts/useForm.ts'

export function Welcome() {
  const account = useRead('getAccount', {}).data
  const teams = useRead('listTeams', {}).data ?? []
  const invited = teams.filter(({ status }) => status === 'INVITED')
  const hasTeam = invited.length < teams.length
  const navigate = useNavigate()
  const { form, field } = useForm({ name: '' })
  const create = useCall('createTeam')
  const action = useAction(async () => {
    const { slug } = await create.mutateAsync({ body: { name: form.name } })
    await navigate({ to: '/t/$team', params: { team: slug } })
  })
  return (
    <CardPage title="Welcome" lead="A team owns datasources and decides what is shown to whom. You become its owner.">
      {invited.length > 0 && (
        <section className="stack close" aria-label="Invitations">
          {invited.map((team) => (
            <Invited key={team.id} team={team} />
          ))}
          <div className="or">or</div>
        </section>
      )}
      <form className="stack" onSubmit={submitting(action.run)}>
        <TextField
          label="Team name"
          required
          maxLength={100}
          autoFocus={invited.length === 0}
          placeholder="Acme data"
          autoComplete="organization"
          {...field('name')}
        />
        <Failure of={action.error} />
        <Button type="submit" look={invited.length > 0 ? undefined : 'primary'} wide busy={action.busy}>
          Create team
        </Button>
      </form>
      <div className="outside-foot">
        <span className="soft">
          <bdi>{account?.email ?? ''}</bdi>
        </span>
        <span className="row">
          {hasTeam && (
            <LinkButton to="/" look="quiet" small>
              Cancel
            </LinkButton>
          )}
          <Button look="quiet" small onClick={() => void signOut()}>
            Sign out
          </Button>
        </span>
      </div>
    </CardPage>
  )
}

function Invited({ team }: { readonly team: Team }) {
  const navigate = useNavigate()
  const action = useAction(async () => {
    await call('openTeam', { params: { teamId: team.id } })
    await queryClient.invalidateQueries()
    await navigate({ to: '/t/$team', params: { team: team.slug } })
  })
  return (
    <>
      <Button look="primary" wide busy={action.busy} onClick={action.run}>
        Open <bdi className="cut">{team.name}</bdi>
      </Button>
      <p className="tiny">You are invited as {ROLE_NAMES[team.role].toLowerCase()}.</p>
      <Failure of={action.error} />
    </>
  )
}
