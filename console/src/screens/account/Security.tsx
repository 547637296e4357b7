// The ways to sign in: password, second factor, passkeys and accounts at providers. Also lists the open sessions.
import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { auth } from '../../api/client.ts'
import { authOptions } from '../../api/sign-in-options.ts'
import { useRead } from '../../api/queries.ts'
import { forgetToken } from '../../api/session.ts'
import { Page } from '../../frame/Page.tsx'
import { Button } from '../../parts/Button.tsx'
import { Checkbox, PasswordField } from '../../parts/Field.tsx'
import { LoadState } from '../../parts/LoadState.tsx'
import { Failure, Notice } from '../../parts/Notice.tsx'
import { Panel } from '../../parts/Panel.tsx'
import { say } from '../../parts/StatusMessages.tsx'
import { Table } from '../../parts/Table.tsx'
import { Tag } from '../../parts/Tag.tsx'
import { Time } from '../../parts/Time.tsx'
import { useAction } from '../../parts/useAction.ts'
import { submitting, useForm } from '../../parts/useForm.ts'
import { NewPassword } from '../sign-in/Setup.tsx'
import { browserName } from './browser-name.ts'
import { ConnectedProviders, ConnectionOutcome } from './ConnectedProviders.tsx'
import { Passkeys } from './Passkeys.tsx'
import { SecondFactor } from './SecondFactor.tsx'

export function Security() {
  const options = useQuery(authOptions).data
  const ways = useQuery({
    queryKey: ['sign-in methods'],
    queryFn: ({ signal }) => auth('GET /auth/sign-in-methods', undefined, signal),
  })
  const methods = options?.methods ?? []
  return (
    <Page title="Security" lead="How you sign in, and where you are signed in." width="narrow">
      <ConnectionOutcome oidcName={options?.oidcName} />
      {ways.data?.password === false ? <NoPassword mail={options?.mail === true} /> : <ChangePassword />}
      <SecondFactor needsPassword={ways.data?.password === false} />
      <Passkeys ways={ways} works={options === undefined || methods.includes('passkey')} />
      <ConnectedProviders ways={ways} methods={methods} oidcName={options?.oidcName} />
      <Sessions />
    </Page>
  )
}

/** Offers a password to a person who signed up at a provider. The person sets it with a mailed reset link. */
function NoPassword({ mail }: { readonly mail: boolean }) {
  const email = useRead('getAccount', {}).data?.email
  const [sent, setSent] = useState(false)
  const action = useAction(async () => {
    await auth('POST /auth/request-password-reset', { email: email ?? '', redirectTo: '/app/reset' })
    setSent(true)
  })
  return (
    <Panel title="Password" lead="Your account has no password: you sign in another way.">
      <Failure of={action.error} />
      {sent ? (
        <Notice tone="ok" role="status">
          A link is on its way. It is valid for an hour.
          {!mail && ' This service sends no mail. Its operator finds the link in the log.'}
        </Notice>
      ) : (
        <div>
          <Button busy={action.busy} disabled={email === undefined} onClick={action.run}>
            Mail me a link to set one
          </Button>
        </div>
      )}
    </Panel>
  )
}

function ChangePassword() {
  const { form, field, setForm } = useForm({ currentPassword: '', newPassword: '' })
  const [others, setOthers] = useState(true)
  const action = useAction(async () => {
    await auth('POST /auth/change-password', { ...form, revokeOtherSessions: others })
    forgetToken()
    setForm({ currentPassword: '', newPassword: '' })
    say('The password is changed')
  })
  return (
    <Panel title="Password">
      <form className="stack" aria-label="Change password" onSubmit={submitting(action.run)}>
        <div className="columns-2">
          <PasswordField
            label="Current password"
            required
            autoComplete="current-password"
            {...field('currentPassword')}
          />
          <NewPassword label="New password" {...field('newPassword')} />
        </div>
        <Checkbox
          label="End all other sessions"
          checked={others}
          onChange={(event) => setOthers(event.target.checked)}
        />
        <Failure of={action.error} />
        <div>
          <Button type="submit" busy={action.busy}>
            Change password
          </Button>
        </div>
      </form>
    </Panel>
  )
}

function Sessions() {
  const sessions = useQuery({
    queryKey: ['sessions'],
    queryFn: ({ signal }) => auth('GET /auth/list-sessions', undefined, signal),
  })
  const end = useMutation({
    mutationFn: (id: string) => auth('POST /auth/revoke-session', { id }),
    onSuccess: () => say('The session is ended'),
  })
  const endOthers = useMutation({
    mutationFn: () => auth('POST /auth/revoke-other-sessions', {}),
    onSuccess: () => say('The other sessions are ended'),
  })
  return (
    <Panel
      title="Sessions"
      acts={
        <Button small look="danger" busy={endOthers.isPending} onClick={() => endOthers.mutate()}>
          End all other sessions
        </Button>
      }
    >
      <Failure of={end.error ?? endOthers.error} />
      <LoadState of={sessions} what="sessions">
        {(data) => (
          <Table
            label="Sessions"
            rows={data.toSorted((a, b) => Number(b.current === true) - Number(a.current === true))}
            keyOf={({ id }) => id}
            columns={[
              {
                head: 'Browser',
                kind: 'main',
                cell: (session) => (
                  <span className="row">
                    <bdi>{browserName(session.userAgent)}</bdi>
                    {session.current === true && <Tag tone="accent">This session</Tag>}
                  </span>
                ),
              },
              { head: 'Address', kind: 'quiet', cell: ({ ipAddress }) => <bdi>{ipAddress ?? 'unknown'}</bdi> },
              { head: 'Signed in', kind: 'quiet', cell: ({ createdAt }) => <Time at={createdAt} /> },
              {
                head: '',
                kind: 'acts',
                cell: (session) =>
                  session.current !== true && (
                    <Button
                      small
                      busy={end.isPending && end.variables === session.id}
                      onClick={() => end.mutate(session.id)}
                    >
                      End session
                    </Button>
                  ),
              },
            ]}
          />
        )}
      </LoadState>
    </Panel>
  )
}
