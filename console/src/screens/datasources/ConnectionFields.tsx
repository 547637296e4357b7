// The fields of a connection. Used to connect a database, and to change a connection.
import { Button } from '../../parts/Button.tsx'
import { PasswordField, TextArea, TextField } from '../../parts/Field.tsx'
import { Notice } from '../../parts/Notice.tsx'
import { Select } from '../../parts/Select.tsx'
import { contradictionsOf, defaultPort, isSentWhole, readString, TLS, type Fields } from './connection.ts'

interface ConnectionFieldsProps {
  readonly fields: Fields
  readonly onChange: (fields: Fields) => void
  /** What is wrong with the connection string. */
  readonly problem: string | null
  readonly onProblem: (problem: string | null) => void
  /** The sentence under a secret that is kept unless a new one is typed. */
  readonly kept?: string
}

export function ConnectionFields({ fields, onChange, problem, onProblem, kept }: ConnectionFieldsProps) {
  const set = (change: Partial<Fields>) => onChange({ ...fields, ...change })
  const readIt = () => {
    const read = readString(fields.uri)
    onProblem(read.problem)
    if (read.problem === null) set(read.fields)
  }
  if (fields.type === 'BIGQUERY')
    return (
      <>
        <div className="columns-2">
          <Text label="Database" field="database" {...{ fields, set }} note="The id of the Google Cloud project." />
          <Text label="Location" field="location" {...{ fields, set }} note="For example EU. Optional." />
        </div>
        <TextArea
          label="Service account key"
          className="mono"
          spellCheck={false}
          autoComplete="off"
          value={fields.serviceAccountKey}
          note={kept ?? 'The JSON file of a service account.'}
          onChange={(event) => set({ serviceAccountKey: event.target.value })}
        />
      </>
    )
  const whole = isSentWhole(fields)
  return (
    <>
      <div className="with-button">
        <TextField
          label="Connection string"
          className="mono"
          value={fields.uri}
          placeholder={fields.type === 'MONGODB' ? 'mongodb+srv://reader@…' : 'postgresql://reader@…'}
          spellCheck={false}
          autoComplete="off"
          error={problem ?? undefined}
          onChange={(event) => {
            onProblem(null)
            set({ uri: event.target.value })
          }}
        />
        <Button onClick={readIt} disabled={fields.uri.trim() === ''}>
          Read
        </Button>
      </div>
      <Contradictions {...{ fields, set, readIt }} />
      <p className="or">{whole ? 'the string says the rest' : 'or fill in'}</p>
      {!whole && (
        <>
          <div className="columns-host">
            <Text label="Host" field="host" {...{ fields, set }} />
            <Text
              label="Port"
              field="port"
              inputMode="numeric"
              note={fields.port === '' ? `Empty: ${defaultPort(fields.type) ?? ''}` : undefined}
              {...{ fields, set }}
            />
          </div>
          <Text label="Database" field="database" {...{ fields, set }} />
        </>
      )}
      <div className="columns-2">
        {!whole && <Text label="Username" field="username" {...{ fields, set }} />}
        <PasswordField
          label="Password"
          value={fields.password}
          autoComplete="new-password"
          note={kept}
          onChange={(event) => set({ password: event.target.value })}
        />
      </div>
      {!whole && <Select label="TLS" options={TLS} value={fields.sslMode} onChange={(sslMode) => set({ sslMode })} />}
    </>
  )
}

interface TextProps {
  readonly label: string
  readonly field: 'host' | 'port' | 'database' | 'username' | 'location'
  readonly fields: Fields
  readonly set: (change: Partial<Fields>) => void
  readonly note?: string | undefined
  readonly inputMode?: 'numeric'
}

const Text = ({ label, field, fields, set, note, inputMode }: TextProps) => (
  <TextField
    label={label}
    value={fields[field]}
    note={note}
    inputMode={inputMode}
    spellCheck={false}
    autoComplete="off"
    autoCapitalize="none"
    onChange={(event) => set({ [field]: event.target.value })}
  />
)

interface ContradictionsProps {
  readonly fields: Fields
  readonly set: (change: Partial<Fields>) => void
  readonly readIt: () => void
}

function Contradictions({ fields, set, readIt }: ContradictionsProps) {
  const all = contradictionsOf(fields)
  if (all.length === 0) return null
  return (
    <Notice tone="warn" role="alert">
      {all.map(({ field, inString, given }) => (
        <p key={field}>
          The string says {field} <bdi>{inString}</bdi>, the field says <bdi>{given}</bdi>. Choose one.
        </p>
      ))}
      <div className="row conflict-acts">
        <Button small onClick={readIt}>
          Use the string
        </Button>
        <Button small onClick={() => set({ uri: '' })}>
          Use the fields
        </Button>
      </div>
    </Notice>
  )
}
