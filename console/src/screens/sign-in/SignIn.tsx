// The sign-in page: the password, and the other ways that this service accepts.
import { Link, useNavigate, useRouter, useSearch } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { useState, type FormEvent, type ReactNode } from 'react'
import { auth } from '../../api/client.ts'
import { authOptions } from '../../api/sign-in-options.ts'
import { CardPage } from '../../frame/CardPage.tsx'
import { Button } from '../../parts/Button.tsx'
import { Checkbox, PasswordField, TextField } from '../../parts/Field.tsx'
import { Failure, Notice } from '../../parts/Notice.tsx'
import { useAction } from '../../parts/useAction.ts'
import { enter } from './after-sign-in.ts'
import { OtherWays } from './OtherWays.tsx'
import { providerSentence } from './provider-failure.ts'

export function SignIn(): ReactNode {
  const { next, failed, provider } = useSearch({ strict: false })
  const options = useQuery(authOptions).data
  const router = useRouter()
  const navigate = useNavigate()
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  const [rememberMe, setRememberMe] = useState(false)
  const search = next === undefined ? {} : { next }
  const failure = providerSentence({ failed, provider }, options?.oidcName)
  const action = useAction(async () => {
    const answer = await auth('POST /auth/sign-in/email', { email, password, rememberMe })
    if ('twoFactorRedirect' in answer) return navigate({ to: '/two-factor', search })
    await enter(router, next)
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    action.run()
  }
  return (
    <CardPage title="Sign in to Vitrine">
      {failure !== null && action.error === null && <Notice tone="bad">{failure}</Notice>}
      <form className="stack" onSubmit={submit}>
        <TextField
          label="Email"
          type="email"
          required
          autoComplete="username webauthn"
          autoFocus
          value={email}
          onChange={(event) => setEmail(event.target.value)}
        />
        <PasswordField
          label="Password"
          required
          autoComplete="current-password"
          value={password}
          onChange={(event) => setPassword(event.target.value)}
        />
        <Checkbox
          label="Keep me signed in"
          checked={rememberMe}
          onChange={(event) => setRememberMe(event.target.checked)}
        />
        <Failure of={action.error} />
        <Button type="submit" look="primary" wide busy={action.busy}>
          Sign in
        </Button>
      </form>
      <OtherWays methods={options?.methods ?? []} oidcName={options?.oidcName} next={next} rememberMe={rememberMe} />
      <div className="outside-foot">
        <Link to="/reset">Forgot password?</Link>
        {options?.signUp !== 'closed' && (
          <Link to="/sign-up" search={search}>
            Create account
          </Link>
        )}
      </div>
    </CardPage>
  )
}
