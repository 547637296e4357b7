// One text about a table or a column: its state, and the buttons to accept, edit or reject it.
import { AlertTriangle } from 'lucide-react'
import { useState } from 'react'
import { Button } from '../../../parts/Button.tsx'
import { TextArea } from '../../../parts/Field.tsx'
import { Failure } from '../../../parts/Notice.tsx'
import { Tag, type Tone } from '../../../parts/Tag.tsx'
import { useAction } from '../../../parts/useAction.ts'
import { LongText } from '../../../parts/UntrustedText.tsx'
import { isAccepted, type Placed, type Status, type Text } from './texts.ts'

export type Change = (change: { text?: string; status: Status }) => Promise<void>

const STATES: Readonly<Record<Status, readonly [Tone, string]>> = {
  PROPOSED: ['accent', 'Proposed'],
  ACCEPTED: ['ok', 'Accepted'],
  CONFIRMED: ['ok', 'Accepted'],
  REJECTED: ['none', 'Rejected'],
}

export function StateOf({ text }: { readonly text: Text }) {
  const [tone, word] = STATES[text.status]
  return (
    <span className="row">
      <Tag tone={tone}>{word}</Tag>
      {text.stale && (
        <Tag tone="warn" icon={AlertTriangle}>
          Stale
        </Tag>
      )}
    </span>
  )
}

const CHARACTERS_MAX = { statement: 500, column: 500, examples: 4_000, summary: 2_000 } as const

export function TextGroup({ placed, onChange }: { readonly placed: Placed; readonly onChange: Change }) {
  const { label, text, place } = placed
  const [edited, setEdited] = useState<string | null>(null)
  const accept = useAction(() => onChange({ status: 'ACCEPTED' }))
  const reject = useAction(() => onChange({ status: 'REJECTED' }))
  const save = useAction(async () => {
    await onChange({ text: edited ?? '', status: 'ACCEPTED' })
    setEdited(null)
  })
  return (
    <div className="doc-text" role="group" aria-label={label}>
      <div className="row apart">
        <span className="row">
          <strong>
            <bdi>{label}</bdi>
          </strong>
          <StateOf text={text} />
        </span>
        {edited === null && (
          <span className="row">
            <Button small busy={accept.busy} disabled={isAccepted(text) && !text.stale} onClick={accept.run}>
              Accept
            </Button>
            <Button small onClick={() => setEdited(text.text)}>
              Edit
            </Button>
            <Button small busy={reject.busy} disabled={text.status === 'REJECTED'} onClick={reject.run}>
              Reject
            </Button>
          </span>
        )}
      </div>
      {edited === null ? (
        <p className={text.status === 'REJECTED' ? 'doc-words rejected' : 'doc-words'}>
          <LongText>{text.text}</LongText>
        </p>
      ) : (
        <>
          <TextArea
            label={`Text of ${label}`}
            value={edited}
            maxLength={CHARACTERS_MAX[place.kind]}
            onChange={(event) => setEdited(event.target.value)}
          />
          <div className="row end">
            <Button small onClick={() => setEdited(null)}>
              Cancel
            </Button>
            <Button small look="primary" busy={save.busy} disabled={edited.trim() === ''} onClick={save.run}>
              Save text
            </Button>
          </div>
        </>
      )}
      <Failure of={accept.error ?? reject.error ?? save.error} />
    </div>
  )
}
