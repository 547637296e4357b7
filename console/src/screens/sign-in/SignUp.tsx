// Creates an account, for anybody or for the holder of an invitation.
import { useQuery } from '@tanstack/react-query'
import { Link, useRouter, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { auth } from '../../api/client.ts'
import { authOptions, waysToSignUp } from '../../api/sign-in-options.ts'
import { hasSession } from '../../api/session.ts'
import { CardPage } from '../../frame/CardPage.tsx'
import { Button } from '../../parts/Button.tsx'
import { TextField } from '../../parts/Field.tsx'
import { Failure, Notice } from '../../parts/Notice.tsx'
import { useAction } from '../../parts/useAction.ts'
import { submitting, useForm } from '../../parts/useForm.ts'
import { enter } from './after-sign-in.ts'
import { useInvitation } from './invitation.ts'
import { MailSent } from './MailSent.tsx'
import { OtherWays } from './OtherWays.tsx'
import { NewPassword } from './Setup.tsx'

export function SignUp() {
  const { next, invite } = useSearch({ strict: false })
  const options = useQuery(authOptions).data
  const invitation = useInvitation(invite).data
  const router = useRouter()
  const { form, field } = useForm({ name: '', email: '', password: '' })
  const [sentTo, setSentTo] = useState<string | null>(null)
  const back = invite === undefined ? next : `/app/invite/${invite}`
  const email = invitation?.email ?? form.email
  const action = useAction(async () => {
    await auth('POST /auth/sign-up/email', {
      ...form,
      email,
      rememberMe: true,
      callbackURL: back ?? '/app/sign-in',
      ...(invite === undefined ? {} : { inviteToken: invite }),
    })
    if (await hasSession()) await enter(router, back)
    else setSentTo(email)
  })
  if (sentTo !== null) return <MailSent email={sentTo} />
  const closed = closedText(options?.signUp, invite)
  const search = back === undefined ? {} : { next: back }
  return (
    <CardPage
      title="Create account"
      lead={
        invitation === undefined ? undefined : (
          <>
            to join <bdi>{invitation.team}</bdi>
          </>
        )
      }
    >
      {closed !== null ? (
        <Notice role="note">{closed}</Notice>
      ) : (
        <>
          <form className="stack" onSubmit={submitting(action.run)}>
            <TextField label="Name" required autoComplete="name" autoFocus {...field('name')} />
            <TextField
              label="Email"
              type="email"
              required
              autoComplete="username"
              {...field('email')}
              value={email}
              readOnly={invitation !== undefined}
            />
            <NewPassword label="Password" {...field('password')} />
            <Failure of={action.error} />
            <Button type="submit" look="primary" wide busy={action.busy}>
              Create account
            </Button>
          </form>
          <OtherWays
            methods={waysToSignUp(options)}
            oidcName={options?.oidcName}
            next={back}
            {...(invite === undefined ? {} : { tokens: { inviteToken: invite } })}
          />
        </>
      )}
      <div className="outside-foot">
        <span className="soft">You have an account?</span>
        <Link to="/sign-in" search={search}>
          Sign in
        </Link>
      </div>
    </CardPage>
  )
}

function closedText(signUp: 'open' | 'invited' | 'closed' | undefined, invite: string | undefined): string | null {
  if (signUp === 'closed') return 'New accounts are switched off here. Ask the operator of this service.'
  if (signUp === 'invited' && invite === undefined)
    return 'New accounts need an invitation here. Ask an admin of a team for one.'
  return null
}
