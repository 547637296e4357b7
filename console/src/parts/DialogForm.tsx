// Forms inside a dialog: the fields, why the last try failed, and the buttons. The dialog itself is the caller's.
import { useState, type ReactNode } from 'react'
import { Button } from './Button.tsx'
import { Checkbox, TextField } from './Field.tsx'
import { submitting } from './useForm.ts'
import { Failure } from './Notice.tsx'
import type { Action } from './useAction.ts'

interface DialogFormProps {
  readonly action: Pick<Action, 'busy' | 'error' | 'run'>
  /** What the button that submits says. */
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

/** Asks to type a name before something is deleted for good. */
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

/** The end of a dialog that shows a secret once: it closes only after the person says that it is stored. */
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
