import { useCall } from '../../api/queries.ts'
import type { Datasource } from '../../api/types.ts'
import { AlertDialog } from '../../parts/Dialog.tsx'
import { TypedConfirmation } from '../../parts/DialogForm.tsx'
import { say } from '../../parts/StatusMessages.tsx'
import { useAction } from '../../parts/useAction.ts'

interface DeleteProps {
  /** Null while no deletion is requested. */
  readonly datasource: Datasource | null
  readonly onClose: () => void
  readonly onDeleted: () => void
}

export function DeleteDatasource({ datasource, onClose, onDeleted }: DeleteProps) {
  const remove = useCall('deleteDatasource')
  const close = () => {
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
    >
      <TypedConfirmation name={name} verb="Delete datasource" action={action} onClose={close} />
    </AlertDialog>
  )
}
