// The dialog “Make the database agree”: shows the commands that restrict the login to the exposed tables and columns.
// The notes say what this kind of database cannot restrict.
import { useRead } from '../../../api/queries.ts'
import type { Answer } from '../../../api/types.ts'
import { useTeam } from '../../../frame/current-team.ts'
import { Button } from '../../../parts/Button.tsx'
import { CopyButton } from '../../../parts/Copy.tsx'
import { Dialog } from '../../../parts/Dialog.tsx'
import { LoadState } from '../../../parts/LoadState.tsx'
import { Notice } from '../../../parts/Notice.tsx'
import { counted } from '../../../parts/format.ts'
import { useDatasource } from '../Datasource.tsx'

interface DatabaseGrantsProps {
  readonly open: boolean
  readonly onClose: () => void
  readonly isChanged: boolean
}

export function DatabaseGrants({ open, onClose, isChanged }: DatabaseGrantsProps) {
  const params = { teamId: useTeam().id, id: useDatasource().id }
  const grants = useRead('getExposureGrants', { params }, { enabled: open })
  return (
    <Dialog
      open={open}
      onClose={onClose}
      wide
      title="Make the database agree"
      description="Vitrine refuses queries of hidden tables and columns. After these commands, the database refuses them too, with the exceptions in the notes."
      foot={
        <>
          <Button className="start" onClick={onClose}>
            Close
          </Button>
          <CopyButton text={grants.data?.text ?? ''} look="primary">
            {grants.data?.kind === 'SQL' ? 'Copy SQL' : 'Copy commands'}
          </CopyButton>
        </>
      }
    >
      {isChanged && (
        <Notice role="note">The commands are for the saved version. Your unsaved changes are not included.</Notice>
      )}
      <LoadState of={grants} what="commands">
        {(data) => <Commands grants={data} />}
      </LoadState>
    </Dialog>
  )
}

/** The maximum number of lines that are shown. The copy button copies all lines. */
const LINES_MAX = 400

function Commands({ grants: { kind, text, notes } }: { readonly grants: Answer<'getExposureGrants'> }) {
  const lines = text.split('\n')
  const rest = lines.length - LINES_MAX
  return (
    <>
      {notes.map((note) => (
        <p key={note} className="small soft">
          {note}
        </p>
      ))}
      <div className="code">
        <pre tabIndex={0} role="group" aria-label={kind === 'SQL' ? 'SQL' : 'Commands'}>
          <code>{lines.slice(0, LINES_MAX).join('\n')}</code>
        </pre>
      </div>
      {rest > 0 && <p className="tiny">{counted(rest, 'more line', 'more lines')}. The copy contains all lines.</p>}
    </>
  )
}
