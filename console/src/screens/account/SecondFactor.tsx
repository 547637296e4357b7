// The second factor. Turning it on or off needs the password and a code. Backup codes are shown only once.
import { useQuery } from '@tanstack/react-query'
import { ShieldCheck } from 'lucide-react'
import { useState } from 'react'
import { auth } from '../../api/client.ts'
import { queryClient } from '../../api/queries.ts'
import { forgetToken } from '../../api/session.ts'
import { DialogForm, StoredConfirmation } from '../../parts/DialogForm.tsx'
import { Button } from '../../parts/Button.tsx'
import { CodeBlock } from '../../parts/CodeBlock.tsx'
import { Dialog } from '../../parts/Dialog.tsx'
import { PasswordField, TextField } from '../../parts/Field.tsx'
import { LoadState } from '../../parts/LoadState.tsx'
import { Panel } from '../../parts/Panel.tsx'
import { QrCode } from '../../parts/QrCode.tsx'
import { say } from '../../parts/StatusMessages.tsx'
import { Tag } from '../../parts/Tag.tsx'
import { useAction } from '../../parts/useAction.ts'
import { useForm } from '../../parts/useForm.ts'

type Step = 'on' | 'off' | 'codes'

/** With `needsPassword`, the account must first get a password, which the second factor requires. */
export function SecondFactor({ needsPassword }: { readonly needsPassword: boolean }) {
  const session = useQuery({
    queryKey: ['session'],
    queryFn: ({ signal }) => auth('GET /auth/get-session', undefined, signal),
  })
  const [step, setStep] = useState<Step | null>(null)
  const close = () => {
    setStep(null)
    forgetToken()
    void queryClient.invalidateQueries()
  }
  return (
    <Panel
      title="Two-factor"
      lead="After your password or provider, you also enter a code from an authenticator app. A passkey needs no code."
    >
      <LoadState of={session} what="second factor" lines={1}>
        {(data) =>
          data?.user.twoFactorEnabled === true ? (
            <div className="row">
              <Tag tone="ok" icon={ShieldCheck}>
                On
              </Tag>
              <Button onClick={() => setStep('codes')}>New backup codes</Button>
              <Button look="danger" onClick={() => setStep('off')}>
                Turn off two-factor
              </Button>
            </div>
          ) : needsPassword ? (
            <p className="soft">Two-factor needs a password. Set a password first.</p>
          ) : (
            <div>
              <Button icon={ShieldCheck} onClick={() => setStep('on')}>
                Turn on two-factor
              </Button>
            </div>
          )
        }
      </LoadState>
      {step === 'on' && <TurnOn onClose={close} />}
      {step === 'off' && <TurnOff onClose={close} />}
      {step === 'codes' && <NewCodes onClose={close} />}
    </Panel>
  )
}

interface StepProps {
  readonly onClose: () => void
}

interface Begun {
  readonly totpURI: string
  readonly backupCodes: readonly string[]
}

function TurnOn({ onClose }: StepProps) {
  const { form, field } = useForm({ password: '', code: '' })
  const [begun, setBegun] = useState<Begun | null>(null)
  const [isOn, setOn] = useState(false)
  const begin = useAction(async () => setBegun(await auth('POST /auth/two-factor/enable', { password: form.password })))
  const finish = useAction(async () => {
    await auth('POST /auth/two-factor/verify-totp', { code: form.code.replace(/\s/g, '') })
    setOn(true)
    say('Two-factor is on')
  })
  if (isOn && begun !== null) return <BackupCodes codes={begun.backupCodes} onClose={onClose} />
  if (begun !== null)
    return (
      <Dialog open stays onClose={onClose} title="Add this account to your authenticator">
        <DialogForm action={finish} verb="Verify" onClose={onClose}>
          <div className="qr-place">
            <QrCode label="QR code of the secret">{begun.totpURI}</QrCode>
            <p className="small soft">
              Scan the code with the app, enter the secret by hand, or{' '}
              <a href={begun.totpURI}>open it on this device</a>. Then enter the code that the app shows.
            </p>
          </div>
          <CodeBlock label="secret">{secretOf(begun.totpURI)}</CodeBlock>
          <TextField
            label="Code"
            required
            autoFocus
            inputMode="numeric"
            autoComplete="one-time-code"
            className="mono"
            {...field('code')}
          />
        </DialogForm>
      </Dialog>
    )
  return (
    <Dialog open onClose={onClose} title="Turn on two-factor" description="Your other sessions end.">
      <DialogForm action={begin} verb="Continue" onClose={onClose}>
        <PasswordField label="Password" required autoComplete="current-password" {...field('password')} />
      </DialogForm>
    </Dialog>
  )
}

/** Returns the secret in groups of four characters, which are easier to type. */
const secretOf = (uri: string) => (URL.parse(uri)?.searchParams.get('secret') ?? '').replace(/(.{4})(?=.)/g, '$1 ')

function BackupCodes({ codes, onClose }: StepProps & { readonly codes: readonly string[] }) {
  return (
    <Dialog
      open
      stays
      onClose={() => undefined}
      title="Store your backup codes"
      description="Each code signs you in once if you lose the authenticator. The codes are shown only once."
    >
      <div className="stack">
        <CodeBlock label="backup codes">{codes.join('\n')}</CodeBlock>
        <StoredConfirmation label="I have stored these codes" onDone={onClose} />
      </div>
    </Dialog>
  )
}

function TurnOff({ onClose }: StepProps) {
  const { form, field } = useForm({ password: '', code: '' })
  const action = useAction(async () => {
    await auth('POST /auth/two-factor/disable', { password: form.password, code: form.code.trim() })
    say('Two-factor is off')
    onClose()
  })
  return (
    <Confirm
      title="Turn off two-factor"
      verb="Turn off"
      fields={{ field }}
      action={action}
      onClose={onClose}
      destroys
    />
  )
}

function NewCodes({ onClose }: StepProps) {
  const { form, field } = useForm({ password: '', code: '' })
  const [codes, setCodes] = useState<readonly string[] | null>(null)
  const action = useAction(async () => {
    const body = { password: form.password, code: form.code.trim() }
    setCodes((await auth('POST /auth/two-factor/generate-backup-codes', body)).backupCodes)
  })
  if (codes !== null) return <BackupCodes codes={codes} onClose={onClose} />
  return <Confirm title="New backup codes" verb="Continue" fields={{ field }} action={action} onClose={onClose} />
}

interface ConfirmProps extends StepProps {
  readonly title: string
  readonly verb: string
  readonly destroys?: boolean
  readonly fields: { readonly field: ReturnType<typeof useForm<{ password: string; code: string }>>['field'] }
  readonly action: ReturnType<typeof useAction>
}

function Confirm({ title, verb, destroys = false, fields: { field }, action, onClose }: ConfirmProps) {
  return (
    <Dialog open onClose={onClose} title={title}>
      <DialogForm action={action} verb={verb} look={destroys ? 'destroy' : 'primary'} onClose={onClose}>
        <PasswordField label="Password" required autoComplete="current-password" {...field('password')} />
        <TextField
          label="Code"
          required
          autoComplete="one-time-code"
          className="mono"
          note="From the authenticator, or a backup code."
          {...field('code')}
        />
      </DialogForm>
    </Dialog>
  )
}
