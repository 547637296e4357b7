// Creates the first account of a service.
import { useQuery } from '@tanstack/react-query'
import { useRouter, useSearch } from '@tanstack/react-router'
import { auth } from '../../api/client.ts'
import { authOptions, waysToSignUp } from '../../api/sign-in-options.ts'
import { hasSession } from '../../api/session.ts'
import { CardPage } from '../../frame/CardPage.tsx'
import { Button } from '../../parts/Button.tsx'
import { PasswordField, TextField } from '../../parts/Field.tsx'
import { Failure, Notice } from '../../parts/Notice.tsx'
import { useAction } from '../../parts/useAction.ts'
import { submitting, useForm } from '../../parts/useForm.ts'
import { enter } from './after-sign-in.ts'
import { MailSent } from './MailSent.tsx'
import { OtherWays } from './OtherWays.tsx'
import { providerSentence } from './provider-failure.ts'
import { useState } from 'react'

export function Setup() {
  const { next, failed, provider } = useSearch({ strict: false })
  const options = useQuery(authOptions).data
  const router = useRouter()
  const { form, field } = useForm({ name: '', email: '', password: '', setupToken: '' })
  const [sentTo, setSentTo] = useState<string | null>(null)
  const action = useAction(async () => {
    const { setupToken, ...person } = form
    await auth('POST /auth/sign-up/email', {
      ...person,
      rememberMe: true,
      callbackURL: '/app/sign-in',
      ...(options?.setupTokenNeeded === true ? { setupToken: setupToken.trim() } : {}),
    })
    if (await hasSession()) await enter(router, next)
    else setSentTo(form.email)
  })
  const failure = providerSentence({ failed, provider }, options?.oidcName)
  if (sentTo !== null) return <MailSent email={sentTo} />
  return (
    <CardPage title="Set up Vitrine" lead="Create the first account of this service.">
      {failure !== null && <Notice tone="bad">{failure}</Notice>}
      <form className="stack" onSubmit={submitting(action.run)}>
        <TextField label="Name" required autoComplete="name" autoFocus {...field('name')} />
        <TextField label="Email" type="email" required autoComplete="username" {...field('email')} />
        <NewPassword label="Password" {...field('password')} />
        {options?.setupTokenNeeded === true && (
          <TextField
            label="Setup token"
            required
            autoComplete="off"
            spellCheck={false}
            note="It is in the service’s log."
            {...field('setupToken')}
          />
        )}
        <Failure of={action.error} />
        <Button type="submit" look="primary" wide busy={action.busy}>
          Create account
        </Button>
      </form>
      <OtherWays
        methods={waysToSignUp(options)}
        oidcName={options?.oidcName}
        next={next}
        tokens={options?.setupTokenNeeded === true ? { setupToken: form.setupToken.trim() } : {}}
      />
    </CardPage>
  )
}

export function NewPassword(
  props: Pick<Parameters<typeof PasswordField>[0], 'label' | 'value' | 'onChange' | 'autoFocus'>,
) {
  const limits = useQuery(authOptions).data?.password
  return (
    <PasswordField
      {...props}
      required
      autoComplete="new-password"
      minLength={limits?.min}
      maxLength={limits?.max}
      note={limits === undefined ? undefined : `${limits.min} characters or more`}
    />
  )
}
