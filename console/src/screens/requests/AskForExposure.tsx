// Lets a member ask the admins to expose the table or column that blocked the member's query.
import { Check, Hand } from 'lucide-react'
import { useState } from 'react'
import { call } from '../../api/client.ts'
import { queryClient } from '../../api/queries.ts'
import { Button } from '../../parts/Button.tsx'
import { Dialog } from '../../parts/Dialog.tsx'
import { DialogForm } from '../../parts/DialogForm.tsx'
import { TextArea } from '../../parts/Field.tsx'
import { Tag } from '../../parts/Tag.tsx'
import { useAction } from '../../parts/useAction.ts'

const WHY_MAX = 500

interface AskForExposureProps {
  readonly at: { readonly teamId: string; readonly id: string }
  /** Returns the id of the refusal's audit item. May first run the query, so that the refusal is in the audit. */
  readonly refused: () => Promise<string>
}

export function AskForExposure({ at, refused }: AskForExposureProps) {
  const [open, setOpen] = useState(false)
  const [asked, setAsked] = useState(false)
  if (asked)
    return (
      <Tag icon={Check} tone="ok">
        Requested. An admin decides.
      </Tag>
    )
  const close = () => setOpen(false)
  return (
    <>
      <Button small icon={Hand} onClick={() => setOpen(true)}>
        Ask to expose it
      </Button>
      <Dialog
        open={open}
        onClose={close}
        title="Ask to expose it"
        description="The admins of this team see the refused query and what you write here."
      >
        <Form
          at={at}
          refused={refused}
          onClose={close}
          onAsked={() => {
            setAsked(true)
            close()
          }}
        />
      </Dialog>
    </>
  )
}

function Form({
  at,
  refused,
  onClose,
  onAsked,
}: AskForExposureProps & { readonly onClose: () => void; readonly onAsked: () => void }) {
  const [why, setWhy] = useState('')
  const send = useAction(async () => {
    await call('requestExposure', { params: at, body: { auditId: await refused(), why } })
    onAsked()
    void queryClient.invalidateQueries({ queryKey: ['listRequests'] })
  })
  return (
    <DialogForm action={send} verb="Send request" disabled={why.trim() === ''} onClose={onClose}>
      <TextArea
        label="Why you need it"
        value={why}
        maxLength={WHY_MAX}
        onChange={(event) => setWhy(event.target.value)}
        autoFocus
      />
    </DialogForm>
  )
}
