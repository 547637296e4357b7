// A team's name, limits and audit, and its deletion. One button saves all fields; nothing is saved automatically.
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useCall, useRead } from '../../api/queries.ts'
import type { Answer, TeamDetail } from '../../api/types.ts'
import { Page } from '../../frame/Page.tsx'
import { hasRole, useTeam } from '../../frame/current-team.ts'
import { TypedConfirmation } from '../../parts/DialogForm.tsx'
import { Button } from '../../parts/Button.tsx'
import { AlertDialog } from '../../parts/Dialog.tsx'
import { Checkbox, NumberField, TextField } from '../../parts/Field.tsx'
import { LoadState } from '../../parts/LoadState.tsx'
import { Failure } from '../../parts/Notice.tsx'
import { Panel } from '../../parts/Panel.tsx'
import { say } from '../../parts/StatusMessages.tsx'
import { useAction } from '../../parts/useAction.ts'
import { submitting, useForm } from '../../parts/useForm.ts'
import { Webhooks } from './Webhooks.tsx'

type Settings = NonNullable<TeamDetail['settings']>
type Ceilings = Answer<'getInstance'>['ceilings']

export function TeamSettings() {
  const team = useTeam()
  const detail = useRead('getTeam', { params: { teamId: team.id } })
  const instance = useRead('getInstance', {})
  return (
    <Page title="Team" lead="Name, limits and audit of this team." width="narrow" needs="ADMIN">
      <LoadState of={detail} what="settings" lines={8}>
        {(data) =>
          data.settings !== undefined && (
            <Form key={data.id} team={data} settings={data.settings} ceilings={instance.data?.ceilings ?? {}} />
          )
        }
      </LoadState>
      <Webhooks />
      {hasRole(team, 'OWNER') && <Danger />}
    </Page>
  )
}

const formOf = ({ name, slug }: TeamDetail, settings: Settings) => ({
  name,
  slug,
  queries: String(settings.queryBudget.limit),
  seconds: String(settings.queryBudget.windowSeconds),
  rowCap: String(settings.rowCap),
  timeout: String(settings.statementTimeoutMs / 1000),
  days: String(settings.auditRetentionDays),
  postgresMaxPlanCost: String(settings.postgresMaxPlanCost),
  mongodbMaxScannedDocuments: String(settings.mongodbMaxScannedDocuments),
  bigqueryMaxBytes: String(settings.bigqueryMaxBytes / GIB),
})

const GIB = 2 ** 30

function Form({
  team,
  settings,
  ceilings,
}: {
  readonly team: TeamDetail
  readonly settings: Settings
  readonly ceilings: Ceilings
}) {
  const navigate = useNavigate()
  const saved = formOf(team, settings)
  const { form, field, setForm } = useForm(saved)
  const [redact, setRedact] = useState(settings.auditRedactLiterals)
  const [factor, setFactor] = useState(settings.requireSecondFactor)
  const change = useCall('changeTeam')
  const isChanged =
    JSON.stringify(form) !== JSON.stringify(saved) ||
    redact !== settings.auditRedactLiterals ||
    factor !== settings.requireSecondFactor
  const discard = () => {
    setForm(saved)
    setRedact(settings.auditRedactLiterals)
    setFactor(settings.requireSecondFactor)
    action.clear()
  }
  const action = useAction(async () => {
    const { slug } = await change.mutateAsync({
      params: { teamId: team.id },
      body: {
        name: form.name,
        ...(form.slug === team.slug ? {} : { slug: form.slug }),
        settings: {
          queryBudget: { limit: Number(form.queries), windowSeconds: Number(form.seconds) },
          rowCap: Number(form.rowCap),
          statementTimeoutMs: Math.round(Number(form.timeout) * 1000),
          auditRetentionDays: Number(form.days),
          auditRedactLiterals: redact,
          requireSecondFactor: factor,
          postgresMaxPlanCost: Number(form.postgresMaxPlanCost),
          mongodbMaxScannedDocuments: Number(form.mongodbMaxScannedDocuments),
          bigqueryMaxBytes: Math.round(Number(form.bigqueryMaxBytes) * GIB),
        },
      },
    })
    say('Saved')
    if (slug !== team.slug) await navigate({ to: '/t/$team/settings', params: { team: slug }, replace: true })
  })
  const upTo = (ceiling: number | undefined, text: string) =>
    ceiling === undefined ? text : `${text} At most ${ceiling.toLocaleString('en-GB')} on this service.`
  return (
    <form className="stack loose" onSubmit={submitting(action.run)}>
      <Panel title="Team">
        <div className="columns-2">
          <TextField label="Name" required maxLength={100} {...field('name')} />
          <TextField
            label="Slug"
            required
            maxLength={63}
            spellCheck={false}
            note="In the addresses of this console."
            {...field('slug')}
          />
        </div>
      </Panel>
      <Panel title="Limits" lead="They apply to everybody: people, API keys and agents.">
        <div className="columns-2">
          <NumberField
            label="Queries"
            required
            min={1}
            note={upTo(ceilings.queryBudget, 'Per window, for the whole team.')}
            {...field('queries')}
          />
          <NumberField
            label="Seconds"
            required
            min={1}
            max={86_400}
            note="Length of the window."
            {...field('seconds')}
          />
          <NumberField
            label="Row cap"
            required
            min={1}
            max={50_000}
            note={upTo(ceilings.rowCap, 'Rows of one answer.')}
            {...field('rowCap')}
          />
          <NumberField
            label="Timeout in seconds"
            required
            min={0.1}
            max={60}
            step="any"
            note="After this time, the query is cancelled in the database."
            {...field('timeout')}
          />
        </div>
        <h3>Cost of one query</h3>
        <div className="columns-3">
          <NumberField label="PostgreSQL plan cost" required min={1} step="any" {...field('postgresMaxPlanCost')} />
          <NumberField
            label="MongoDB documents"
            required
            min={1}
            note="Scanned."
            {...field('mongodbMaxScannedDocuments')}
          />
          <NumberField
            label="BigQuery GiB"
            required
            min={0.001}
            step="any"
            note="Billed."
            {...field('bigqueryMaxBytes')}
          />
        </div>
      </Panel>
      <Panel title="Audit and access">
        <div className="columns-2">
          <NumberField label="Keep audit for days" required min={1} max={3650} {...field('days')} />
        </div>
        <div>
          <Checkbox
            label="Redact literals"
            note="The audit keeps the shape of each query, without the values in it."
            checked={redact}
            onChange={(event) => setRedact(event.target.checked)}
          />
          <Checkbox
            label="Require a second factor"
            note="Members without a second factor, and their keys, are refused until they turn one on."
            checked={factor}
            onChange={(event) => setFactor(event.target.checked)}
          />
        </div>
      </Panel>
      <Failure of={action.error} />
      <div className="row end">
        <Button disabled={!isChanged} onClick={discard}>
          Discard
        </Button>
        <Button type="submit" look="primary" disabled={!isChanged} busy={action.busy}>
          Save settings
        </Button>
      </div>
    </form>
  )
}

function Danger() {
  const team = useTeam()
  const [open, setOpen] = useState(false)
  return (
    <Panel
      title="Delete team"
      danger
      lead="Datasources, their secrets and their exposures are deleted. The audit is kept until its retention ends."
    >
      <div>
        <Button look="danger" onClick={() => setOpen(true)}>
          Delete team
        </Button>
      </div>
      {open && <Deletion slug={team.slug} teamId={team.id} onClose={() => setOpen(false)} />}
    </Panel>
  )
}

function Deletion({
  slug,
  teamId,
  onClose,
}: {
  readonly slug: string
  readonly teamId: string
  readonly onClose: () => void
}) {
  const navigate = useNavigate()
  const remove = useCall('deleteTeam')
  const action = useAction(async () => {
    await remove.mutateAsync({ params: { teamId }, body: { confirm: slug } })
    await navigate({ to: '/' })
  })
  return (
    <AlertDialog
      open
      onClose={onClose}
      title={`Delete ${slug}`}
      description="This cannot be undone. Keys and agents have no access to this team from the next request on."
    >
      <TypedConfirmation name={slug} verb="Delete team" action={action} onClose={onClose} />
    </AlertDialog>
  )
}
