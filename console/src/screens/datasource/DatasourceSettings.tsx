// Changes the connection of a datasource, and disables or deletes the datasource. Secrets are never shown. If the
// person types no new secret, the stored secret is kept. If the secret would be sent to another address, the person
// must enter it again.
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useCall } from '../../api/queries.ts'
import type { Datasource } from '../../api/types.ts'
import { Button } from '../../parts/Button.tsx'
import { TextField } from '../../parts/Field.tsx'
import { Failure } from '../../parts/Notice.tsx'
import { say } from '../../parts/StatusMessages.tsx'
import { useAction } from '../../parts/useAction.ts'
import { bodyOf, contradictionsOf, NO_FIELDS, type Fields } from '../datasources/connection-form.ts'
import { ConnectionFields } from '../datasources/ConnectionFields.tsx'
import { DeleteDatasource } from '../datasources/DeleteDatasource.tsx'
import { useDatasource } from './Datasource.tsx'
import '../datasources/connect.css'

export function DatasourceSettings() {
  return (
    <div className="settings-page">
      <ConnectionForm />
      <Danger />
    </div>
  )
}

const textOf = (value: unknown) =>
  typeof value === 'string'
    ? value
    : Array.isArray(value)
      ? value.filter((each) => typeof each === 'string').join(', ')
      : ''

const fieldsOf = ({ type, host, port, database, username, sslMode, connectionMode, config }: Datasource): Fields => ({
  ...NO_FIELDS,
  type,
  host: host ?? '',
  port: port === null ? '' : String(port),
  database,
  username: username ?? '',
  sslMode: sslMode ?? 'verify-full',
  authSource: textOf(config['authSource']),
  identity: connectionMode === 'APPLICATION_DEFAULT' ? 'machine' : 'key',
  location: textOf(config['location']),
  datasets: textOf(config['datasets']),
  apiEndpoint: textOf(config['apiEndpoint']),
  config,
})

const KEPT = 'The stored value is kept until you enter a new one.'

function ConnectionForm() {
  const datasource = useDatasource()
  const [name, setName] = useState(datasource.name)
  const [before] = useState(() => fieldsOf(datasource))
  const [fields, setFields] = useState(before)
  const [problem, setProblem] = useState<string | null>(null)
  const change = useCall('changeDatasource')
  const save = useAction(async () => {
    const renamed = name.trim() === datasource.name ? {} : { name: name.trim() }
    const body = { ...renamed, ...changesOf(before, fields) }
    await change.mutateAsync({ params: { teamId: datasource.teamId, id: datasource.id }, body })
    setFields({ ...fields, password: '', serviceAccountKey: '' })
    say('Connection saved')
  })
  return (
    <section className="panel" aria-label="Connection">
      <header>
        <h2>Connection</h2>
        <p>To check a changed connection, open Health.</p>
      </header>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          save.run()
        }}
      >
        <div className="panel-body">
          <TextField
            label="Name"
            required
            maxLength={100}
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
          <ConnectionFields fields={fields} onChange={setFields} problem={problem} onProblem={setProblem} kept={KEPT} />
          <Failure of={save.error} />
          <div className="row end">
            <Button
              type="submit"
              look="primary"
              busy={save.busy}
              disabled={name.trim() === '' || contradictionsOf(fields).length > 0}
            >
              Save connection
            </Button>
          </div>
        </div>
      </form>
    </section>
  )
}

/** Returns all connection fields without empty secrets, or an empty object if no field was changed. */
function changesOf(before: Fields, now: Fields) {
  if (JSON.stringify(before) === JSON.stringify(now)) return {}
  const { type: _, ...rest } = bodyOf(now)
  return rest
}

function Danger() {
  const datasource = useDatasource()
  const { teamId, id, status } = datasource
  const navigate = useNavigate()
  const [deleting, setDeleting] = useState(false)
  const disable = useCall('disableDatasource')
  const enable = useCall('enableDatasource')
  const isOff = status === 'DISABLED'
  const turn = isOff ? enable : disable
  return (
    <section className="panel danger" aria-label="Danger">
      <header>
        <h2>Pause or end</h2>
        <p>A disabled datasource refuses every query and keeps its settings. A deletion cannot be undone.</p>
      </header>
      <div className="panel-body">
        <Failure of={disable.error ?? enable.error} />
        <div className="row">
          <Button busy={turn.isPending} onClick={() => turn.mutate({ params: { teamId, id } })}>
            {isOff ? 'Enable datasource' : 'Disable datasource'}
          </Button>
          <Button look="danger" onClick={() => setDeleting(true)}>
            Delete datasource
          </Button>
        </div>
      </div>
      <DeleteDatasource
        datasource={deleting ? datasource : null}
        onClose={() => setDeleting(false)}
        onDeleted={() => void navigate({ to: '/t/$team/datasources', params: (now) => ({ team: now.team ?? '' }) })}
      />
    </section>
  )
}
