// Resets a password. Without a token, asks for the address. With the token of a mailed link, asks for the new password.
import { useQuery } from '@tanstack/react-query'
import { Link, useSearch } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { auth } from '../../api/client.ts'
import { authOptions } from '../../api/sign-in-options.ts'
import type { AuthAnswer } from '../../api/types.ts'
import { CardPage } from '../../frame/CardPage.tsx'
import { Button, LinkButton } from '../../parts/Button.tsx'
import { Checkbox, Group, TextField } from '../../parts/Field.tsx'
import { Loading } from '../../parts/LoadState.tsx'
import { Failure, Notice } from '../../parts/Notice.tsx'
import { ago } from '../../parts/format.ts'
import { useAction } from '../../parts/useAction.ts'
import { submitting, useForm } from '../../parts/useForm.ts'
import { NewPassword } from './Setup.tsx'

export function Reset() {
  const search = useSearch({ strict: false })
  // Removes the token from the address, so that neither the history nor a screenshot contains it.
  const [token] = useState(search.token)
  useEffect(() => {
    if (token !== undefined) history.replaceState(history.state, '', location.pathname)
  }, [token])
  return token === undefined ? <AskForLink /> : <SetPassword token={token} />
}

function AskForLink() {
  const options = useQuery(authOptions).data
  const { form, field } = useForm({ email: '' })
  const [sent, setSent] = useState(false)
  const action = useAction(async () => {
    await auth('POST /auth/request-password-reset', { email: form.email, redirectTo: '/app/reset' })
    setSent(true)
  })
  return (
    <CardPage title="Reset password" lead="A link by mail lets you choose a new password.">
      {sent ? (
        <Notice tone="ok" role="status">
          If the address has an account, a link is on its way. It is valid for an hour.
          {options?.mail === false && ' This service sends no mail. Its operator finds the link in the log.'}
        </Notice>
      ) : (
        <form className="stack" onSubmit={submitting(action.run)}>
          <TextField label="Email" type="email" required autoFocus autoComplete="username" {...field('email')} />
          <Failure of={action.error} />
          <Button type="submit" look="primary" wide busy={action.busy}>
            Send link
          </Button>
        </form>
      )}
      <div className="outside-foot">
        <Link to="/sign-in">Back to sign in</Link>
      </div>
    </CardPage>
  )
}

type Held = AuthAnswer<'POST /auth/reset-password/preview'>

function SetPassword({ token }: { readonly token: string }) {
  const held = useQuery({
    queryKey: ['reset', token],
    retry: false,
    queryFn: ({ signal }) => auth('POST /auth/reset-password/preview', { token }, signal),
  })
  const [done, setDone] = useState(false)
  return (
    <CardPage title="Reset password" lead={done ? undefined : 'Every session of your account will end.'}>
      {done ? (
        <>
          <Notice tone="ok" role="status">
            The new password is set.
          </Notice>
          <LinkButton to="/sign-in" look="primary" wide>
            Sign in
          </LinkButton>
        </>
      ) : held.data !== undefined ? (
        <Choose held={held.data} token={token} onDone={() => setDone(true)} />
      ) : held.error === null ? (
        <Loading what="account" />
      ) : (
        <>
          <Failure of={held.error} />
          <LinkButton to="/reset" wide>
            Ask for a new link
          </LinkButton>
        </>
      )}
    </CardPage>
  )
}

const used = ({ lastUsedAt }: { readonly lastUsedAt: string | null }) =>
  lastUsedAt === null ? 'never used' : `last used ${ago(lastUsedAt)}`

/**
 * Lists the access that a reset ends, because an intruder may have created it. The person can keep an item if `mayKeep`
 * is set.
 */
function Choose({ held, token, onDone }: { readonly held: Held; readonly token: string; readonly onDone: () => void }) {
  const { form, field } = useForm({ password: '', code: '' })
  const [kept, setKept] = useState<ReadonlySet<string>>(new Set())
  const [keepFactor, setKeepFactor] = useState(false)
  const action = useAction(async () => {
    const keep = {
      keyIds: held.keys.map(({ id }) => id).filter((id) => kept.has(id)),
      grantIds: held.grants.map(({ id }) => id).filter((id) => kept.has(id)),
      passkeyIds: held.passkeys.map(({ id }) => id).filter((id) => kept.has(id)),
      providers: held.providers.map(({ provider }) => provider).filter((provider) => kept.has(provider)),
      secondFactor: keepFactor,
    }
    const code = form.code.trim()
    await auth('POST /auth/reset-password', {
      token,
      newPassword: form.password,
      keep,
      ...(code === '' ? {} : { code }),
    })
    onDone()
  })
  const ends = (id: string, label: string, note: string) => (
    <Checkbox
      key={id}
      label={label}
      note={note}
      disabled={!held.mayKeep}
      checked={!kept.has(id)}
      onChange={() => setKept(kept.symmetricDifference(new Set([id])))}
    />
  )
  return (
    <form className="stack" onSubmit={submitting(action.run)}>
      <NewPassword label="New password" autoFocus {...field('password')} />
      {held.keys.length > 0 && (
        <Group label="Revoke API keys">
          {held.keys.map((key) => ends(key.id, `${key.name} (${key.hint})`, used(key)))}
        </Group>
      )}
      {held.grants.length > 0 && (
        <Group label="End the access of agents">
          {held.grants.map((grant) => ends(grant.id, `${grant.clientName} (${grant.clientHost})`, used(grant)))}
        </Group>
      )}
      {held.passkeys.length > 0 && (
        <Group label="Remove passkeys">
          {held.passkeys.map((passkey) => ends(passkey.id, passkey.name, used(passkey)))}
        </Group>
      )}
      {held.providers.length > 0 && (
        <Group label="Disconnect accounts">
          {held.providers.map(({ provider, name, label, createdAt }) =>
            ends(provider, label === null ? name : `${name} (${label})`, `connected ${ago(createdAt)}`),
          )}
        </Group>
      )}
      {held.secondFactor && held.mayKeep && (
        <Group label="Second factor">
          <Checkbox label="End the second factor" checked={!keepFactor} onChange={() => setKeepFactor(!keepFactor)} />
          {!keepFactor && (
            <TextField
              label="Code"
              autoComplete="one-time-code"
              note="From the authenticator, or a backup code. Without a code the second factor stays on."
              {...field('code')}
            />
          )}
        </Group>
      )}
      <Failure of={action.error} />
      <Button type="submit" look="primary" wide busy={action.busy}>
        Set password
      </Button>
    </form>
  )
}
