// The fields of a connection, used to connect a database and to change a connection.
import type { ReactNode } from 'react'
import { useRead } from '../../api/queries.ts'
import { Button } from '../../parts/Button.tsx'
import { Group, PasswordField, Radio, TextArea, TextField } from '../../parts/Field.tsx'
import { Notice } from '../../parts/Notice.tsx'
import { Select } from '../../parts/Select.tsx'
import {
  contradictionsOf,
  defaultPort,
  isSentWhole,
  readString,
  saysTls,
  TLS,
  withHost,
  type Fields,
  type TextName,
} from './connection-form.ts'

interface ConnectionFieldsProps {
  readonly fields: Fields
  readonly onChange: (fields: Fields) => void
  readonly problem: string | null
  readonly onProblem: (problem: string | null) => void
  /** The result of the last check. The key is the service's name of the field. */
  readonly wrong?: Readonly<Record<string, string>>
  /** The note under a field with a stored secret. The secret stays unless the person types a new one. */
  readonly kept?: string
}

export function ConnectionFields(props: ConnectionFieldsProps) {
  return props.fields.type === 'BIGQUERY' ? <BigQueryFields {...props} /> : <ServerFields {...props} />
}

/** Returns a function that returns the properties of a text field, with the error that the last check found. */
function textFor({ fields, onChange, wrong = {} }: ConnectionFieldsProps) {
  return (field: TextName) => ({
    value: fields[field],
    error: wrong[field],
    spellCheck: false,
    autoComplete: 'off',
    autoCapitalize: 'none',
    onChange: (event: { readonly target: { readonly value: string } }) =>
      onChange(field === 'host' ? withHost(fields, event.target.value) : { ...fields, [field]: event.target.value }),
  })
}

function BigQueryFields(props: ConnectionFieldsProps) {
  const { fields, onChange, wrong = {}, kept } = props
  const text = textFor(props)
  const allows = useRead('getInstance', {}).data?.allows
  const identities = [
    { value: 'key', label: 'A service account, by its key' },
    { value: 'machine', label: 'The identity of the machine that Vitrine runs on' },
  ] as const
  return (
    <>
      <TextField label="Database" {...text('database')} note="The id of the Google Cloud project." />
      {allows?.applicationDefault === true && (
        <Group label="Identity" role="radiogroup">
          {identities.map(({ value, label }) => (
            <Radio
              key={value}
              name="identity"
              label={label}
              checked={fields.identity === value}
              onChange={() => onChange({ ...fields, identity: value })}
            />
          ))}
        </Group>
      )}
      {fields.identity === 'key' && (
        <TextArea
          label="Service account key"
          className="mono"
          {...text('serviceAccountKey')}
          note={kept ?? 'The JSON file of a service account.'}
        />
      )}
      <More open={[fields.location, fields.datasets, fields.apiEndpoint].some((each) => each !== '')}>
        <div className="columns-2">
          <TextField
            label="Location"
            {...text('location')}
            note="For example EU. If empty, the location of the datasets."
          />
          <TextField
            label="Datasets"
            {...text('datasets')}
            note="Names, separated by commas. If empty, all datasets of the project."
          />
        </div>
        {allows?.bigqueryEndpoint === true && (
          <TextField
            label="Endpoint"
            {...text('apiEndpoint')}
            note="An address other than Google’s, for example of an emulator."
          />
        )}
      </More>
      {wrong['connectionMode'] !== undefined && <Notice tone="bad">{wrong['connectionMode']}</Notice>}
    </>
  )
}

function ServerFields(props: ConnectionFieldsProps) {
  const { fields, onChange, problem, onProblem, wrong = {}, kept } = props
  const text = textFor(props)
  const whole = isSentWhole(fields)
  const readIt = () => {
    const read = readString(fields.uri)
    onProblem(read.problem)
    if (read.problem === null) onChange({ ...fields, ...read.fields })
  }
  // A string that is sent whole contains the address, so errors of the address fields are shown at the string.
  const inString = whole
    ? ['host', 'port', 'database', 'username'].map((field) => wrong[field]).find(Boolean)
    : undefined
  return (
    <>
      <div className="with-button">
        <TextField
          label="Connection string"
          {...text('uri')}
          className="mono"
          placeholder={fields.type === 'MONGODB' ? 'mongodb+srv://reader@…' : 'postgresql://reader@…'}
          error={problem ?? inString}
          onChange={(event) => {
            onProblem(null)
            onChange({ ...fields, uri: event.target.value })
          }}
        />
        <Button onClick={readIt} disabled={fields.uri.trim() === ''}>
          Read
        </Button>
      </div>
      <Contradictions {...{ fields, onChange, readIt }} />
      <p className="or">{whole ? 'the string contains the address and the user name' : 'or fill in'}</p>
      {!whole && (
        <div className="columns-host">
          <TextField label="Host" {...text('host')} />
          <TextField
            label="Port"
            inputMode="numeric"
            {...text('port')}
            note={fields.port === '' ? `Empty: ${defaultPort(fields.type) ?? ''}` : undefined}
          />
          <TextField label="Database" {...text('database')} />
        </div>
      )}
      <div className="columns-3">
        {!whole && <TextField label="Username" {...text('username')} />}
        <PasswordField label="Password" {...text('password')} autoComplete="new-password" note={kept} />
        {!(whole && saysTls(fields.uri)) && (
          <Select
            label="TLS"
            options={TLS}
            value={fields.sslMode}
            error={wrong['sslMode']}
            onChange={(sslMode) => onChange({ ...fields, sslMode })}
          />
        )}
      </div>
      <More open={fields.tlsCa !== '' || wrong['tlsCa'] !== undefined || fields.authSource !== ''}>
        {fields.type === 'MONGODB' && !whole && (
          <TextField
            label="Login database"
            {...text('authSource')}
            note="The database in which the user is defined. If empty, admin."
          />
        )}
        <TextArea
          label="CA certificate"
          className="mono"
          {...text('tlsCa')}
          placeholder="-----BEGIN CERTIFICATE-----"
          note={kept ?? 'PEM, if a private authority signed the server’s certificate.'}
        />
      </More>
    </>
  )
}

/** Fields that are rarely needed. */
function More({ open, children }: { readonly open: boolean; readonly children: ReactNode }) {
  return (
    <details className="more" open={open || undefined}>
      <summary>More options</summary>
      <div className="stack">{children}</div>
    </details>
  )
}

interface ContradictionsProps extends Pick<ConnectionFieldsProps, 'fields' | 'onChange'> {
  readonly readIt: () => void
}

function Contradictions({ fields, onChange, readIt }: ContradictionsProps) {
  const all = contradictionsOf(fields)
  if (all.length === 0) return null
  return (
    <Notice tone="warn" role="alert">
      {all.map(({ field, inString, given }) => (
        <p key={field}>
          The string has {field} <bdi>{inString}</bdi>, the field has <bdi>{given}</bdi>. Choose one.
        </p>
      ))}
      <div className="row conflict-acts">
        <Button small onClick={readIt}>
          Use the string
        </Button>
        <Button small onClick={() => onChange({ ...fields, uri: '' })}>
          Use the fields
        </Button>
      </div>
    </Notice>
  )
}
