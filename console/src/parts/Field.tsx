// Form fields: a label, the control, a note, and an error sentence.
import { AlertCircle } from 'lucide-react'
import { useId, useState } from 'react'
import type { InputHTMLAttributes, ReactNode, Ref, TextareaHTMLAttributes } from 'react'
import { Button } from './Button.tsx'
import { classes } from './class-names.ts'
import { Icon } from './Icon.tsx'

export interface Labelled {
  readonly label: string
  readonly note?: ReactNode
  readonly error?: string | undefined
}

/** Returns the ids that connect a control with its label, note and error. */
export function useLabelled({ note, error }: Labelled) {
  const id = useId()
  const described = [error === undefined ? '' : `${id}-error`, note === undefined ? '' : `${id}-note`].join(' ').trim()
  return {
    id,
    control: {
      id,
      'aria-describedby': described === '' ? undefined : described,
      'aria-invalid': error === undefined ? undefined : true,
    },
  }
}

export function FieldFrame({
  id,
  label,
  note,
  error,
  children,
  className,
}: Labelled & { readonly id: string; readonly children: ReactNode; readonly className?: string }) {
  return (
    <div className={classes('field', className)}>
      <label className="field-label" htmlFor={id} id={`${id}-label`}>
        {label}
      </label>
      {children}
      {error !== undefined && (
        <span className="field-error" id={`${id}-error`}>
          <Icon of={AlertCircle} />
          {error}
        </span>
      )}
      {note !== undefined && (
        <span className="field-note" id={`${id}-note`}>
          {note}
        </span>
      )}
    </div>
  )
}

type InputProps = Labelled &
  Omit<InputHTMLAttributes<HTMLInputElement>, 'id'> & { readonly ref?: Ref<HTMLInputElement> }

export function TextField({ label, note, error, className, ...rest }: InputProps) {
  const { id, control } = useLabelled({ label, note, error })
  return (
    <FieldFrame {...{ id, label, note, error }}>
      <input type="text" {...rest} {...control} className={classes('input', className)} />
    </FieldFrame>
  )
}

export function NumberField(props: InputProps) {
  return <TextField {...props} type="number" inputMode="numeric" />
}

export function PasswordField({ label, note, error, ...rest }: InputProps) {
  const { id, control } = useLabelled({ label, note, error })
  const [shown, show] = useState(false)
  return (
    <FieldFrame {...{ id, label, note, error }}>
      <span className="input-with">
        <input {...rest} {...control} type={shown ? 'text' : 'password'} className="input" spellCheck={false} />
        <Button look="quiet" small aria-pressed={shown} onClick={() => show(!shown)}>
          Show<span className="hidden-words"> {label.toLowerCase()}</span>
        </Button>
      </span>
    </FieldFrame>
  )
}

export function TextArea({
  label,
  note,
  error,
  className,
  ...rest
}: Labelled & Omit<TextareaHTMLAttributes<HTMLTextAreaElement>, 'id'>) {
  const { id, control } = useLabelled({ label, note, error })
  return (
    <FieldFrame {...{ id, label, note, error }}>
      <textarea {...rest} {...control} className={classes('input', className)} />
    </FieldFrame>
  )
}

type ChoiceProps = Omit<InputHTMLAttributes<HTMLInputElement>, 'type'> & {
  readonly label: ReactNode
  readonly note?: string
  readonly indeterminate?: boolean
}

function Choice({
  label,
  note,
  indeterminate = false,
  ...rest
}: ChoiceProps & { readonly type: 'checkbox' | 'radio' }) {
  const id = useId()
  const mark = (element: HTMLInputElement | null) => {
    if (element !== null) element.indeterminate = indeterminate
  }
  return (
    <label className="choice">
      <input
        {...rest}
        ref={mark}
        aria-labelledby={`${id}-label`}
        aria-describedby={note === undefined ? undefined : `${id}-note`}
      />
      <span className="choice-words">
        <span id={`${id}-label`}>{label}</span>
        {note !== undefined && <small id={`${id}-note`}>{note}</small>}
      </span>
    </label>
  )
}

export const Checkbox = (props: ChoiceProps) => <Choice {...props} type="checkbox" />
export const Radio = (props: ChoiceProps) => <Choice {...props} type="radio" />
export const Switch = (props: ChoiceProps) => <Choice {...props} type="checkbox" role="switch" />

/** Several checkboxes or radio buttons under one label. */
export function Group({
  label,
  role = 'group',
  children,
}: {
  readonly label: string
  readonly role?: 'group' | 'radiogroup'
  readonly children: ReactNode
}) {
  const id = useId()
  return (
    <div className="field" role={role} aria-labelledby={id}>
      <span className="field-label" id={id}>
        {label}
      </span>
      <div>{children}</div>
    </div>
  )
}
