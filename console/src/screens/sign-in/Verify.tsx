// The page of a verification link. It asks for the password of the sign-up, because the password proves that the owner
// of the mailbox created the account.
import { useSearch } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { auth } from '../../api/client.ts'
import { nextPath } from '../../frame/return-path.ts'
import { CardPage } from '../../frame/CardPage.tsx'
import { LinkButton, Button } from '../../parts/Button.tsx'
import { PasswordField } from '../../parts/Field.tsx'
import { Failure, Notice } from '../../parts/Notice.tsx'
import { useAction } from '../../parts/useAction.ts'
import { submitting, useForm } from '../../parts/useForm.ts'

export function Verify() {
  const search = useSearch({ strict: false })
  const [{ token = '', callbackURL }] = useState(search)
  useEffect(() => history.replaceState(history.state, '', location.pathname), [])
  const { form, field } = useForm({ password: '' })
  const [done, setDone] = useState(false)
  const action = useAction(async () => {
    await auth('POST /auth/verify-email', { token, password: form.password })
    setDone(true)
  })
  const next = nextPath(callbackURL)
  const isPage = next !== null && next !== '/app/sign-in'
  if (done)
    return (
      <CardPage title="Verify your address">
        <Notice tone="ok" role="status">
          Your address is verified.
        </Notice>
        <LinkButton to="/sign-in" search={isPage ? { next } : {}} look="primary" wide>
          Sign in
        </LinkButton>
      </CardPage>
    )
  return (
    <CardPage title="Verify your address" lead="Enter the password that you chose when you signed up.">
      <form className="stack" onSubmit={submitting(action.run)}>
        <PasswordField label="Password" required autoFocus autoComplete="current-password" {...field('password')} />
        <Failure of={action.error} />
        <Button type="submit" look="primary" wide busy={action.busy}>
          Verify
        </Button>
      </form>
      <p className="tiny">
        You did not sign up? Then close this page. Somebody else used your address, but cannot verify it without you.
      </p>
    </CardPage>
  )
}
