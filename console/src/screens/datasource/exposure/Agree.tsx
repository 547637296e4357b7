// "Make the database agree": the statements that take from the login what the exposure hides.
import { useMemo } from 'react'
import { Button } from '../../../parts/Button.tsx'
import { CopyButton } from '../../../parts/Copy.tsx'
import { Dialog } from '../../../parts/Dialog.tsx'
import { Notice } from '../../../parts/Notice.tsx'
import { counted } from '../../../parts/time.ts'
import type { Choice } from './choice.ts'
import { grantsFor } from './grants.ts'
import type { SchemaNode } from './nodes.ts'

interface AgreeProps {
  readonly open: boolean
  readonly onClose: () => void
  readonly schemas: readonly SchemaNode[]
  /** The saved choice. */
  readonly choice: Choice
  readonly login: string
  readonly isChanged: boolean
}

/** More lines are copied, but not shown. */
const LINES_MAX = 400

export function Agree({ open, onClose, schemas, choice, login, isChanged }: AgreeProps) {
  const sql = useMemo(() => (open ? grantsFor(schemas, choice, login) : ''), [open, schemas, choice, login])
  const lines = sql.split('\n')
  const rest = lines.length - LINES_MAX
  return (
    <Dialog
      open={open}
      onClose={onClose}
      wide
      title="Make the database agree"
      description="Vitrine refuses what is hidden. With these statements the database refuses it too. Run them as the owner of the tables."
      foot={
        <>
          <Button className="start" onClick={onClose}>
            Close
          </Button>
          <CopyButton text={sql} look="primary">
            Copy SQL
          </CopyButton>
        </>
      }
    >
      {isChanged && (
        <Notice role="note">This is for the saved version. Your unsaved changes are not part of it.</Notice>
      )}
      <div className="code">
        <pre tabIndex={0} role="group" aria-label="SQL">
          <code>{lines.slice(0, LINES_MAX).join('\n')}</code>
        </pre>
      </div>
      {rest > 0 && <p className="tiny">{counted(rest, 'more line', 'more lines')}. Copy SQL takes all of them.</p>}
    </Dialog>
  )
}
