// Forms inside a dialog: the fields, the error of the last attempt, and the buttons. The caller renders the dialog
// itself.
import { useState, type ReactNode } from 'react'
import { Button } from './Button.tsx'
import { Checkbox, TextField } from './Field.tsx'
import { submitting } from './useForm.ts'
import { Failure } from './Notice.tsx'
import type { Action } from './useAction.ts'

interface DialogFormProps {
  readonly action: Pick<Action, 'busy' | 'error' | 'run'>
  readonly verb: string
  readonly look?: 'primary' | 'destroy'
  readonly disabled?: boolean
  readonly onClose: () => void
  readonly children?: ReactNode
}

export function DialogForm({ action, verb, look = 'primary', disabled = false, onClose, children }: DialogFormProps) {
  return (
    <form className="stack" onSubmit={submitting(action.run)}>
      {children}
      <Failure of={action.error} />
      <div className="dialog-acts">
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" look={look} busy={action.busy} disabled={disabled}>
          {verb}
        </Button>
      </div>
    </form>
  )
}

/** Requires the person to type a name before a permanent deletion. */
export function TypedConfirmation({
  name,
  ...rest
}: Pick<DialogFormProps, 'action' | 'verb' | 'onClose'> & { readonly name: string }) {
  const [typed, setTyped] = useState('')
  return (
    <DialogForm {...rest} look="destroy" disabled={typed !== name}>
      <TextField
        label={`Type ${name} to confirm`}
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
        autoComplete="off"
        spellCheck={false}
      />
    </DialogForm>
  )
}

/**
 * The last part of a dialog that shows a secret once. The dialog closes only after the person confirms that the secret
 * is stored.
 */
export function StoredConfirmation({ label, onDone }: { readonly label: string; readonly onDone: () => void }) {
  const [stored, setStored] = useState(false)
  return (
    <div className="dialog-acts apart">
      <Checkbox label={label} checked={stored} onChange={(event) => setStored(event.target.checked)} />
      <Button look="primary" disabled={!stored} onClick={onDone}>
        Done
      </Button>
    </div>
  )
}
