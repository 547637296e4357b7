// A field with a value to copy, for example a secret that is shown only once. Focusing the field selects the value.
import { CopyButton } from './Copy.tsx'
import { TextField } from './Field.tsx'

interface CopyFieldProps {
  readonly label: string
  readonly value: string
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
