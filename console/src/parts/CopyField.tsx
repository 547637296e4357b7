// A value to copy, for example a secret that is shown once. It is selected when it is focused.
import { CopyButton } from './Copy.tsx'
import { TextField } from './Field.tsx'

interface CopyFieldProps {
  readonly label: string
  readonly value: string
  /** What the button says. */
  readonly verb: string
}

export function CopyField({ label, value, verb }: CopyFieldProps) {
  return (
    <div className="copy-field">
      <TextField label={label} readOnly className="mono" value={value} onFocus={(event) => event.target.select()} />
      <CopyButton text={value} look="primary">
        {verb}
      </CopyButton>
    </div>
  )
}
