// The outcome of a connection check: each step with its icon. A remedy for several steps is shown once.
import { AlertTriangle, Check, X, type LucideIcon } from 'lucide-react'
import { useState } from 'react'
import type { Answer } from '../../api/types.ts'
import { Button } from '../../parts/Button.tsx'
import { CopyButton } from '../../parts/Copy.tsx'
import { Tag } from '../../parts/Tag.tsx'
import { counted, duration } from '../../parts/format.ts'

type TestReport = Answer<'testDatasource'>
type Step = TestReport['steps'][number]

const SIGNS = {
  PASS: ['ok', Check, 'Passed'],
  WARN: ['warn', AlertTriangle, 'Warning'],
  FAIL: ['bad', X, 'Failed'],
} as const satisfies Record<string, readonly ['ok' | 'warn' | 'bad', LucideIcon, string]>

/** Steps that need attention come first. */
const ORDER = { FAIL: 0, WARN: 1, PASS: 2 } as const

const FIELD_WORDS: Readonly<Record<string, string>> = {
  host: 'host',
  port: 'port',
  database: 'database',
  username: 'username',
  password: 'password',
  sslMode: 'TLS mode',
  tlsCa: 'CA certificate',
  connectionMode: 'identity',
  serviceAccountKey: 'key',
}

interface TestReportProps {
  readonly of: TestReport
  /** Opens the form again, so that the person can change the field of a failed step. */
  readonly onChange?: () => void
}

export function TestReport({ of, onChange }: TestReportProps) {
  const steps = of.steps.toSorted((a, b) => ORDER[a.status] - ORDER[b.status])
  return (
    <div className="stack">
      <Headline of={of} />
      <ul className="checks" aria-label="Checks">
        {steps.map((step) => (
          <StepLine key={step.id} step={step} onChange={onChange} />
        ))}
      </ul>
      {Object.entries(of.remedies).map(([id, text]) => (
        <Remedy key={id} text={text} steps={of.steps.filter(({ remedyId }) => remedyId === id)} />
      ))}
    </div>
  )
}

function Headline({ of: { grade, steps, ok, latencyMs, serverVersion } }: { readonly of: TestReport }) {
  const [tone, icon] = SIGNS[grade]
  const warnings = steps.filter(({ status }) => status === 'WARN').length
  const words = grade === 'PASS' ? 'All checks passed' : grade === 'WARN' ? counted(warnings, 'warning') : 'Failed'
  return (
    <p className="row small">
      <Tag tone={tone} icon={icon}>
        {words}
      </Tag>
      <span className="soft">
        {ok && `Connected in ${duration(latencyMs)}`}
        {serverVersion !== null && (
          <>
            {' · version '}
            <bdi>{serverVersion}</bdi>
          </>
        )}
      </span>
    </p>
  )
}

function StepLine({
  step: { status, message, field },
  onChange,
}: { readonly step: Step } & Pick<TestReportProps, 'onChange'>) {
  const [tone, icon, word] = SIGNS[status]
  const about = status === 'FAIL' && field !== null ? FIELD_WORDS[field] : undefined
  return (
    <li>
      <Tag tone={tone} icon={icon} bare>
        <span className="hidden-words">{word}: </span>
      </Tag>
      <span className="row apart">
        <bdi>{message}</bdi>
        {about !== undefined && onChange !== undefined && (
          <Button small onClick={onChange}>
            Change the {about}
          </Button>
        )}
      </span>
    </li>
  )
}

function Remedy({ text, steps }: { readonly text: string; readonly steps: readonly Step[] }) {
  const kind = steps[0]?.remedyKind ?? 'TEXT'
  const isCode = kind !== 'TEXT'
  const [shown, show] = useState(!isCode)
  const name = kind === 'SQL' ? 'SQL' : kind === 'GCLOUD' ? 'commands' : 'command'
  return (
    <section className="remedy" aria-label="Remedy">
      <header className="row apart">
        <h2>{steps.length === 1 ? 'What helps' : `One remedy for ${steps.length} checks`}</h2>
        {isCode && (
          <div className="row">
            <Button small look="quiet" aria-expanded={shown} onClick={() => show(!shown)}>
              {shown ? 'Hide' : 'Show'} {name}
            </Button>
            <CopyButton small text={text}>{`Copy ${name}`}</CopyButton>
          </div>
        )}
      </header>
      {shown && (isCode ? <pre tabIndex={0}>{text}</pre> : <p>{text}</p>)}
    </section>
  )
}
