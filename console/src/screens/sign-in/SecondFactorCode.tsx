// The second step of a sign-in: a code from the authenticator, or a backup code.
import { Link, useRouter, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { auth } from '../../api/client.ts'
import { CardPage } from '../../frame/CardPage.tsx'
import { Button } from '../../parts/Button.tsx'
import { TextField } from '../../parts/Field.tsx'
import { Failure } from '../../parts/Notice.tsx'
import { useAction } from '../../parts/useAction.ts'
import { submitting } from '../../parts/useForm.ts'
import { enter } from './after-sign-in.ts'

export function SecondFactorCode() {
  const { next } = useSearch({ strict: false })
  const router = useRouter()
  const [code, setCode] = useState('')
  const [backup, setBackup] = useState(false)
  const action = useAction(async () => {
    if (backup) await auth('POST /auth/two-factor/verify-backup-code', { code: code.trim() })
    else await auth('POST /auth/two-factor/verify-totp', { code: code.replace(/\s/g, '') })
    await enter(router, next)
  })
  return (
    <CardPage
      title="Enter your code"
      lead={backup ? 'Each backup code works once.' : 'Open your authenticator and enter the code it shows.'}
    >
      <form className="stack" onSubmit={submitting(action.run)}>
        <TextField
          label="Code"
          required
          autoFocus
          autoComplete="one-time-code"
          inputMode={backup ? 'text' : 'numeric'}
          className="mono"
          spellCheck={false}
          value={code}
          onChange={(event) => setCode(event.target.value)}
        />
        <Failure of={action.error} />
        <Button type="submit" look="primary" wide busy={action.busy}>
          Verify
        </Button>
        <Button
          look="quiet"
          wide
          onClick={() => {
            setBackup(!backup)
            setCode('')
            action.clear()
          }}
        >
          {backup ? 'Use the authenticator' : 'Use a backup code'}
        </Button>
      </form>
      <div className="outside-foot">
        <Link to="/sign-in">Back to sign in</Link>
      </div>
    </CardPage>
  )
}
