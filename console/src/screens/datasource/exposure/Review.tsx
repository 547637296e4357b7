// The dialog before a save. It shows added and removed columns, the impact on the queries of the last days, a field for
// a note, and the options if somebody else has saved meanwhile.
import { useState } from 'react'
import { Button } from '../../../parts/Button.tsx'
import { Dialog } from '../../../parts/Dialog.tsx'
import { TextField } from '../../../parts/Field.tsx'
import { Failure, Notice } from '../../../parts/Notice.tsx'
import { ago } from '../../../parts/format.ts'
import { useAction } from '../../../parts/useAction.ts'
import type { Difference } from './choice.ts'
import { ExposureDifference } from './ExposureDifference.tsx'
import { ImpactRegion } from './Impact.tsx'
import type { Conflict, Draft } from './useDraft.ts'
import type { ImpactState } from './usePreview.ts'

interface ReviewProps {
  readonly open: boolean
  readonly onClose: () => void
  readonly teamId: string
  readonly draft: Draft
  readonly impact: ImpactState | null
  readonly note: string
  readonly onNote: (note: string) => void
  readonly onSave: () => Promise<void>
}

const NOTE_MAX = 200

export function Review({ open, onClose, teamId, draft, impact, note, onNote, onSave }: ReviewProps) {
  const save = useAction(onSave)
  return (
    <Dialog
      open={open}
      onClose={onClose}
      wide
      title="Review changes"
      description="The change applies from the next request on, for every key and agent."
      foot={
        <>
          <Button className="start" onClick={onClose}>
            Back
          </Button>
          <Button
            look="primary"
            busy={save.busy}
            disabled={!draft.isChanged || draft.conflict !== null}
            onClick={save.run}
          >
            Save version {draft.base.version + 1}
          </Button>
        </>
      }
    >
      <div className="review-lists">
        <ExposureDifference of={draft.difference} />
      </div>
      <ImpactRegion teamId={teamId} is={impact} />
      <TextField
        label="Note"
        note="For the people who read the history. Optional."
        maxLength={NOTE_MAX}
        value={note}
        onChange={(event) => onNote(event.target.value)}
      />
      {draft.conflict !== null && <InTheWay conflict={draft.conflict} draft={draft} />}
      <Failure of={save.error} />
    </Dialog>
  )
}

function InTheWay({ conflict, draft }: { readonly conflict: Conflict; readonly draft: Draft }) {
  const [theirs, setTheirs] = useState<Difference | null>(null)
  const compare = useAction(async () => setTheirs(await draft.theirs()))
  const put = useAction(draft.putOnTop)
  return (
    <>
      <Notice tone="warn" role="alert">
        <p>
          <bdi>{conflict.author ?? 'Somebody'}</bdi> saved{' '}
          {conflict.version === null ? 'a newer version' : `version ${conflict.version}`}
          {conflict.savedAt !== null && ` ${ago(conflict.savedAt)}`}. Your changes are kept.
        </p>
        <div className="row conflict-acts">
          <Button small busy={compare.busy} onClick={compare.run}>
            Compare
          </Button>
          <Button small busy={put.busy} onClick={put.run}>
            Put mine on top
          </Button>
        </div>
      </Notice>
      {theirs !== null && (
        <section className="stack close" aria-label="What they changed">
          <h3>What they changed</h3>
          <ExposureDifference of={theirs} />
        </section>
      )}
      <Failure of={compare.error ?? put.error} />
    </>
  )
}
