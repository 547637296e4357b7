// Asks for the name of a datasource before it is deleted.
import { useState } from 'react'
import { useCall } from '../../api/queries.ts'
import type { Datasource } from '../../api/types.ts'
import { Button } from '../../parts/Button.tsx'
import { AlertDialog } from '../../parts/Dialog.tsx'
import { TextField } from '../../parts/Field.tsx'
import { Failure } from '../../parts/Notice.tsx'
import { say } from '../../parts/Status.tsx'
import { useAction } from '../../parts/useAction.ts'

interface DeleteProps {
  /** Null while nothing is to be deleted. */
  readonly datasource: Datasource | null
  readonly onClose: () => void
  readonly onDeleted: () => void
}

export function DeleteDatasource({ datasource, onClose, onDeleted }: DeleteProps) {
  const [typed, setTyped] = useState('')
  const remove = useCall('deleteDatasource')
  const close = () => {
    setTyped('')
    action.clear()
    onClose()
  }
  const action = useAction(async () => {
    if (datasource === null) return
    await remove.mutateAsync({ params: { teamId: datasource.teamId, id: datasource.id } })
    say(`${datasource.name} was deleted`)
    close()
    onDeleted()
  })
  const name = datasource?.name ?? ''
  return (
    <AlertDialog
      open={datasource !== null}
      onClose={close}
      title={
        <>
          Delete <bdi>{name}</bdi>
        </>
      }
      description="Keys and agents are refused from the next request on. The connection, the exposure and the documentation are erased. The database itself is not touched."
      foot={
        <>
          <Button onClick={close}>Cancel</Button>
          <Button look="destroy" busy={action.busy} disabled={typed !== name} onClick={action.run}>
            Delete datasource
          </Button>
        </>
      }
    >
      <TextField
        label={`Type ${name} to confirm`}
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
        autoComplete="off"
        spellCheck={false}
      />
      <Failure of={action.error} />
    </AlertDialog>
  )
}
