// A dialog that asks the person to sign in again, because the session ended or an action needs a recent sign-in. The
// page below does not change, and waiting calls continue.
import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useEffect, useRef, useState, type FormEvent } from 'react'
import { auth } from '../api/client.ts'
import { useObservable } from '../api/observable.ts'
import { authOptions } from '../api/sign-in-options.ts'
import { queryClient, read } from '../api/queries.ts'
import { asking, giveUp, signedIn, signOut } from '../api/session.ts'
import { Button } from '../parts/Button.tsx'
import { AlertDialog } from '../parts/Dialog.tsx'
import { PasswordField, TextField } from '../parts/Field.tsx'
import { Failure } from '../parts/Notice.tsx'
import { useAction } from '../parts/useAction.ts'

/** Loaded separately, because every page loads this file, and few people need another way to sign in. */
const OtherWays = lazy(async () => ({ default: (await import('../screens/sign-in/OtherWays.tsx')).OtherWays }))

export function SignInAgain() {
  const why = useObservable(asking)
  const finalFocus = useFocusBefore()
  return (
    <AlertDialog
      open={why !== null}
      stays
      finalFocus={finalFocus}
      onClose={() => undefined}
      title="Sign in again"
      description={
        why === 'fresh'
          ? 'This action needs a sign-in within the last ten minutes. Enter your password to continue.'
          : 'Your session ended. Your input is kept.'
      }
    >
      {why !== null && <Ask why={why} />}
    </AlertDialog>
  )
}

/**
 * Returns a function for `finalFocus` that returns the element that had the focus before this dialog opened. This
 * dialog may open over another dialog. By default, the focus would return to the element that opened the other dialog.
 */
function useFocusBefore(): () => HTMLElement | true {
  const before = useRef<Element | null>(null)
  useEffect(
    () =>
      asking.subscribe(() => {
        if (asking.get() !== null) before.current = document.activeElement
      }),
    [],
  )
  return () => {
    const { current } = before
    return current instanceof HTMLElement && current !== document.body && current.isConnected ? current : true
  }
}

function Ask({ why }: { readonly why: 'ended' | 'fresh' }) {
  const email = queryClient.getQueryData(read('getAccount', {}).queryKey)?.email ?? ''
  const [password, setPassword] = useState('')
  const [code, setCode] = useState('')
  const [asksCode, askCode] = useState(false)
  const action = useAction(async () => {
    if (asksCode) {
      await auth('POST /auth/two-factor/verify-totp', { code: code.replace(/\s/g, '') })
    } else {
      const answer = await auth('POST /auth/sign-in/email', { email, password, rememberMe: true })
      if ('twoFactorRedirect' in answer) return askCode(true)
    }
    signedIn()
  })
  const options = useQuery(authOptions).data
  // Signing in at a provider leaves the page. After the session ended, the page may have unsaved input, so no provider
  // is offered. A passkey does not leave the page.
  const offered = options?.methods ?? []
  const other = { methods: why === 'fresh' ? offered : offered.filter((method) => method === 'passkey') }
  const here = location.pathname + location.search
  const resumed = (user: { readonly email: string }) => {
    // Reload if another person signed in, because that person must not continue on this page.
    if (user.email === email) signedIn()
    else location.reload()
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    action.run()
  }
  return (
    <form className="stack" onSubmit={submit}>
      <TextField label="Email" value={email} readOnly autoComplete="username" />
      {asksCode ? (
        <TextField
          label="Code"
          value={code}
          onChange={(event) => setCode(event.target.value)}
          autoComplete="one-time-code"
          inputMode="numeric"
          autoFocus
        />
      ) : (
        <PasswordField
          label="Password"
          value={password}
          onChange={(event) => setPassword(event.target.value)}
          autoComplete="current-password"
          autoFocus
        />
      )}
      <Failure of={action.error} />
      <div className="row apart">
        {why === 'fresh' ? (
          <Button onClick={giveUp}>Cancel</Button>
        ) : (
          <Button look="quiet" onClick={() => void signOut()}>
            Sign out
          </Button>
        )}
        <Button type="submit" look="primary" busy={action.busy}>
          {asksCode ? 'Verify' : 'Sign in'}
        </Button>
      </div>
      {!asksCode && (
        <Suspense>
          <OtherWays {...other} oidcName={options?.oidcName} next={here} onPasskey={resumed} />
        </Suspense>
      )}
      {why === 'ended' && (
        <p className="tiny">If you sign in another way, sign in in a new tab. This page then continues.</p>
      )}
    </form>
  )
}
