// Connects a database in four steps: database, connection, check, tables. The datasource is saved only after the check:
// when the person continues, or saves although the check failed.
import { useNavigate } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { call } from '../../api/client.ts'
import { queryClient } from '../../api/queries.ts'
import type { Answer, Datasource } from '../../api/types.ts'
import { Page } from '../../frame/Page.tsx'
import { useTeam } from '../../frame/current-team.ts'
import { Button } from '../../parts/Button.tsx'
import { Group, Radio, TextField } from '../../parts/Field.tsx'
import { Failure } from '../../parts/Notice.tsx'
import { say } from '../../parts/StatusMessages.tsx'
import { useAction } from '../../parts/useAction.ts'
import { look, LookEnded, type Progress } from '../datasource/introspect.ts'
import { IntrospectionProgress } from '../datasource/IntrospectionProgress.tsx'
import { AccessChoice } from './AccessChoice.tsx'
import { bodyOf, contradictionsOf, readString, withKind, type Fields } from './connection-form.ts'
import { ConnectionFields } from './ConnectionFields.tsx'
import { useConnectDraft } from './wizard-draft.ts'
import { KIND_NAMES, KINDS } from './kind-names.ts'
import { TestReport } from './TestReport.tsx'
import { ConnectSteps } from './ConnectSteps.tsx'
import './connect.css'

export function Connect() {
  const team = useTeam()
  const navigate = useNavigate()
  const { draft, change, forget } = useConnectDraft(team.id)
  const { fields, name, reach } = draft
  const [problem, setProblem] = useState<string | null>(null)
  const [report, setReport] = useState<Answer<'tryConnection'> | null>(null)
  const [wrong, setWrong] = useState<Readonly<Record<string, string>>>({})
  const [created, setCreated] = useState<Datasource | null>(null)
  const [progress, setProgress] = useState<Progress | null>(null)
  const params = { teamId: team.id }
  const called = name.trim() === '' ? suggested(fields) : name.trim()

  const check = useAction(async () => {
    let now = fields
    // Parse the connection string now, if this was not done yet.
    if (now.uri.trim() !== '' && now.host === '' && now.type !== 'BIGQUERY') {
      const read = readString(now.uri)
      setProblem(read.problem)
      if (read.problem !== null) return
      now = { ...now, ...read.fields }
      change({ fields: now })
    }
    const next = await call('tryConnection', { params, body: bodyOf(now) })
    setWrong(wrongOf(next))
    setReport(next)
  })
  const setFields = (next: Fields) => {
    // The result of the check for a field is valid until the field changes.
    setWrong((before) => Object.fromEntries(Object.entries(before).filter(([field]) => isSame(field, fields, next))))
    change({ fields: next })
  }
  const isBack = useRef(false)
  const back = () => {
    isBack.current = true
    setReport(null)
  }
  useEffect(() => {
    if (report !== null || !isBack.current) return
    isBack.current = false
    document.querySelector<HTMLElement>('form [aria-invalid=true]')?.focus()
  }, [report])
  const create = async () => {
    if (created !== null) return created
    const { accessMode, minRole } = reach
    const access = accessMode === 'ROLE_BASED' ? { accessMode, minRole } : { accessMode }
    const datasource = await call('createDatasource', { params, body: { ...bodyOf(fields), ...access, name: called } })
    setCreated(datasource)
    forget()
    return datasource
  }
  const goOn = useAction(async () => {
    const { id, teamId } = await create()
    await look({ teamId, id }, setProgress)
    // Test again, because the service did not store the report of the unsaved connection.
    await call('testDatasource', { params: { teamId, id } }).catch(() => undefined)
    await queryClient.invalidateQueries()
    await navigate({
      to: '/t/$team/datasources/$id/exposure',
      params: { team: team.slug, id },
      search: { step: 'tables' },
    })
  })
  const lookError = goOn.error instanceof LookEnded ? goOn.error : null
  const saveOnly = useAction(async () => {
    const { id } = await create()
    await queryClient.invalidateQueries()
    say(`${called} was saved`)
    await navigate({ to: '/t/$team/datasources/$id/health', params: { team: team.slug, id } })
  })
  return (
    <Page title="Connect a datasource" width="narrow" needs="ADMIN">
      <ConnectSteps at={report === null ? 2 : 3} />
      {report === null ? (
        <form
          className="stack"
          onSubmit={(event) => {
            event.preventDefault()
            check.run()
          }}
        >
          <Group label="Kind of database" role="radiogroup">
            <div className="row kinds">
              {KINDS.map((type) => (
                <Radio
                  key={type}
                  name="kind"
                  label={KIND_NAMES[type]}
                  checked={fields.type === type}
                  onChange={() => {
                    setWrong({})
                    change({ fields: withKind(fields, type) })
                  }}
                />
              ))}
            </div>
          </Group>
          <ConnectionFields
            fields={fields}
            onChange={setFields}
            problem={problem}
            onProblem={setProblem}
            wrong={wrong}
          />
          <hr className="line" />
          <TextField
            label="Name"
            value={name}
            maxLength={100}
            placeholder={suggested(fields)}
            note="The name that your colleagues and agents see."
            onChange={(event) => change({ name: event.target.value })}
          />
          <AccessChoice
            reach={reach}
            onChange={(next) => change({ reach: next })}
            listNote="You choose the people under Access, after you have chosen the tables."
          />
          <Failure of={check.error} />
          <div className="row apart">
            <span className="tiny">Nothing is saved yet.</span>
            <Button
              type="submit"
              look="primary"
              busy={check.busy}
              disabled={contradictionsOf(fields).length > 0 || !isComplete(fields)}
            >
              Check connection
            </Button>
          </div>
        </form>
      ) : (
        <div className="stack">
          <TestReport of={report} {...(created === null ? { onChange: back } : {})} />
          <IntrospectionProgress look={{ busy: goOn.busy, error: lookError, progress }} />
          <Failure of={lookError === null ? (goOn.error ?? saveOnly.error ?? check.error) : null} />
          <div className="row apart">
            <Button disabled={goOn.busy || created !== null} onClick={back}>
              Back
            </Button>
            <div className="row">
              <Button busy={check.busy} disabled={goOn.busy} onClick={check.run}>
                Check again
              </Button>
              {report.grade === 'FAIL' && (
                <Button busy={saveOnly.busy} onClick={saveOnly.run}>
                  Save without connecting
                </Button>
              )}
              <Button look="primary" busy={goOn.busy} disabled={report.grade === 'FAIL'} onClick={goOn.run}>
                Continue
              </Button>
            </div>
          </div>
        </div>
      )}
    </Page>
  )
}

/** Returns a default name: the database, or else the kind of database if there is a connection string. */
const suggested = ({ database, uri, type }: Fields) =>
  database.trim() !== '' ? database.trim() : uri === '' ? '' : type === 'MONGODB' ? 'mongodb' : 'postgres'

const isComplete = (fields: Fields) =>
  fields.type === 'BIGQUERY'
    ? fields.database.trim() !== '' &&
      [fields.serviceAccountKey, fields.apiEndpoint, fields.identity === 'machine' ? fields.identity : ''].some(
        (each) => each.trim() !== '',
      )
    : fields.uri.trim() !== '' || (fields.host.trim() !== '' && fields.database.trim() !== '')

/** Returns the messages of the failed steps. The key is the form field that the step is about. */
function wrongOf({ steps }: Answer<'tryConnection'>): Readonly<Record<string, string>> {
  const failed = steps.filter(({ status, field }) => status === 'FAIL' && field !== null)
  return Object.fromEntries(failed.map(({ field, message }) => [field ?? '', message]))
}

function isSame(field: string, before: Fields, now: Fields): boolean {
  const value = (of: Fields) => Object.entries(of).find(([name]) => name === field)?.[1]
  return value(before) === value(now) && before.uri === now.uri
}
