// A team's webhooks: create, test, disable and delete. The secret is shown only once. The list shows the host of the
// receiver, never the whole address.
import { useState } from 'react'
import { useCall, useRead } from '../../api/queries.ts'
import type { Answer, Input } from '../../api/types.ts'
import { useTeam } from '../../frame/current-team.ts'
import { Button } from '../../parts/Button.tsx'
import { CopyField } from '../../parts/CopyField.tsx'
import { AlertDialog, Dialog } from '../../parts/Dialog.tsx'
import { DialogForm, StoredConfirmation } from '../../parts/DialogForm.tsx'
import { Checkbox, Group, NumberField, TextField } from '../../parts/Field.tsx'
import { LoadState } from '../../parts/LoadState.tsx'
import { MenuItem, MenuLine, RowMenu } from '../../parts/Menu.tsx'
import { Failure } from '../../parts/Notice.tsx'
import { Panel } from '../../parts/Panel.tsx'
import { Select } from '../../parts/Select.tsx'
import { say } from '../../parts/StatusMessages.tsx'
import { Table } from '../../parts/Table.tsx'
import { Time } from '../../parts/Time.tsx'
import { useAction } from '../../parts/useAction.ts'
import { useForm } from '../../parts/useForm.ts'

type Webhook = Answer<'listWebhooks'>[number]
type Event = Webhook['events'][number]
type Format = Webhook['format']
type Delivery = Answer<'listDeliveries'>[number]

const EVENTS: Readonly<Record<Event, string>> = {
  refusals: 'Many refusals',
  drift: 'Drift of a database',
  keyExpiring: 'An API key that expires within a week',
  datasourceError: 'A datasource that cannot be reached',
}
const SHORT: Readonly<Record<Event, string>> = {
  refusals: 'refusals',
  drift: 'drift',
  keyExpiring: 'expiring keys',
  datasourceError: 'failing datasources',
}
const ALL: readonly Event[] = ['refusals', 'drift', 'keyExpiring', 'datasourceError']

interface Fresh {
  readonly name: string
  readonly secret: string
}

export function Webhooks() {
  const team = useTeam()
  const list = useRead('listWebhooks', { params: { teamId: team.id } })
  const [making, setMaking] = useState(false)
  const [fresh, setFresh] = useState<Fresh | null>(null)
  return (
    <Panel
      title="Webhooks"
      lead="Notify another program of refusals, drift, expiring keys and failing datasources."
      acts={
        <Button small onClick={() => setMaking(true)}>
          New webhook
        </Button>
      }
    >
      <LoadState of={list} what="webhooks" lines={2}>
        {(webhooks) => (webhooks.length === 0 ? <p className="tiny">There are none.</p> : <List webhooks={webhooks} />)}
      </LoadState>
      <Dialog open={making} onClose={() => setMaking(false)} title="New webhook">
        <Make
          onClose={() => setMaking(false)}
          onFresh={(made) => {
            setMaking(false)
            setFresh(made)
          }}
        />
      </Dialog>
      <FreshSecret fresh={fresh} onDone={() => setFresh(null)} />
    </Panel>
  )
}

function List({ webhooks }: { readonly webhooks: readonly Webhook[] }) {
  const team = useTeam()
  const [deleting, setDeleting] = useState<Webhook | null>(null)
  const [shown, setShown] = useState<Webhook | null>(null)
  const change = useCall('changeWebhook')
  const sendTest = useCall('testWebhook')
  const paramsOf = ({ id }: Webhook) => ({ teamId: team.id, webhookId: id })
  const [error, setError] = useState<unknown>(null)
  const run = (work: Promise<void>) => {
    setError(null)
    work.catch(setError)
  }
  const trial = async (webhook: Webhook) => {
    const { delivered, error: why } = await sendTest.mutateAsync({ params: paramsOf(webhook) })
    say(delivered ? 'The test arrived' : `The test did not arrive. ${why ?? ''}`)
  }
  const turn = async (webhook: Webhook) => {
    await change.mutateAsync({ params: paramsOf(webhook), body: { enabled: !webhook.enabled } })
    say(webhook.enabled ? 'Turned off' : 'Turned on')
  }
  return (
    <>
      <Table
        label="Webhooks"
        rows={webhooks}
        keyOf={({ id }) => id}
        columns={[
          { head: 'Name', kind: 'main', cell: ({ name }) => <bdi>{name}</bdi> },
          { head: 'Receiver', cell: ({ host, format }) => `${host}${format === 'SLACK' ? ' (chat)' : ''}` },
          { head: 'Tells of', cell: ({ events }) => events.map((event) => SHORT[event]).join(', ') },
          { head: 'State', cell: stateOf },
          {
            head: '',
            kind: 'acts',
            cell: (webhook) => (
              <RowMenu label={`Actions for ${webhook.name}`}>
                <MenuItem onSelect={() => run(trial(webhook))}>Send a test</MenuItem>
                <MenuItem onSelect={() => setShown(webhook)}>Deliveries</MenuItem>
                <MenuItem onSelect={() => run(turn(webhook))}>{webhook.enabled ? 'Turn off' : 'Turn on'}</MenuItem>
                <MenuLine />
                <MenuItem danger onSelect={() => setDeleting(webhook)}>
                  Delete
                </MenuItem>
              </RowMenu>
            ),
          },
        ]}
      />
      <Failure of={error} />
      {shown !== null && <Deliveries webhook={shown} onClose={() => setShown(null)} />}
      {deleting !== null && <Deletion webhook={deleting} onClose={() => setDeleting(null)} />}
    </>
  )
}

function stateOf({ enabled, waiting }: Webhook): string {
  if (!enabled) return 'Off'
  return waiting === 0 ? 'On' : `On, ${waiting} waiting`
}

function Make({ onClose, onFresh }: { readonly onClose: () => void; readonly onFresh: (fresh: Fresh) => void }) {
  const team = useTeam()
  const { form, field } = useForm({ name: '', url: '', count: '20', minutes: '60' })
  const [events, setEvents] = useState<ReadonlySet<Event>>(new Set(ALL))
  const [format, setFormat] = useState<Format>('JSON')
  const create = useCall('createWebhook')
  const action = useAction(async () => {
    const body: Input<'createWebhook'>['body'] = {
      name: form.name,
      url: form.url.trim(),
      format,
      events: ALL.filter((event) => events.has(event)),
      refusals: { count: Number(form.count), minutes: Number(form.minutes) },
    }
    const { name, secret } = await create.mutateAsync({ params: { teamId: team.id }, body })
    onFresh({ name, secret: secret ?? '' })
  })
  return (
    <DialogForm action={action} verb="Create webhook" disabled={events.size === 0} onClose={onClose}>
      <TextField label="Name" required maxLength={100} autoComplete="off" placeholder="on call" {...field('name')} />
      <TextField
        label="Address"
        type="url"
        required
        maxLength={2_000}
        autoComplete="off"
        placeholder="https://hooks.example.com/…"
        note="It is stored encrypted and not shown again."
        {...field('url')}
      />
      <Select
        label="Form"
        value={format}
        options={[
          { value: 'JSON', label: 'JSON, signed' },
          { value: 'SLACK', label: 'Chat: Slack and compatible' },
        ]}
        onChange={setFormat}
      />
      <Group label="Events">
        {ALL.map((event) => (
          <Checkbox
            key={event}
            label={EVENTS[event]}
            checked={events.has(event)}
            onChange={() => setEvents(events.symmetricDifference(new Set([event])))}
          />
        ))}
      </Group>
      {events.has('refusals') && (
        <div className="columns-2">
          <NumberField label="Refusals" required min={1} max={1_000_000} {...field('count')} />
          <NumberField label="Within minutes" required min={1} max={1_440} {...field('minutes')} />
        </div>
      )}
    </DialogForm>
  )
}

/** Shows a new secret. Escape and a click outside do not close the dialog, because the value would be lost. */
function FreshSecret({ fresh, onDone }: { readonly fresh: Fresh | null; readonly onDone: () => void }) {
  return (
    <Dialog
      open={fresh !== null}
      stays
      onClose={() => undefined}
      title="Copy the secret now"
      description="It is shown only once. The receiver checks the signature with it."
    >
      {fresh !== null && (
        <div className="stack">
          <CopyField label="Secret" value={fresh.secret} verb="Copy secret" />
          <StoredConfirmation label="I have stored this secret" onDone={onDone} />
        </div>
      )}
    </Dialog>
  )
}

function Deliveries({ webhook, onClose }: { readonly webhook: Webhook; readonly onClose: () => void }) {
  const team = useTeam()
  const list = useRead('listDeliveries', { params: { teamId: team.id, webhookId: webhook.id } })
  return (
    <Dialog
      open
      wide
      onClose={onClose}
      title={`Deliveries of ${webhook.name}`}
      foot={<Button onClick={onClose}>Close</Button>}
    >
      <LoadState of={list} what="deliveries" lines={4}>
        {(deliveries) =>
          deliveries.length === 0 ? (
            <p className="tiny">Nothing was sent in the last seven days.</p>
          ) : (
            <Table
              label="Deliveries"
              rows={deliveries}
              keyOf={({ id }) => id}
              columns={[
                { head: 'Event', kind: 'main', cell: ({ event }) => SHORT[event] },
                { head: 'At', cell: ({ createdAt }) => <Time at={createdAt} /> },
                { head: 'Outcome', cell: outcomeOf },
              ]}
            />
          )
        }
      </LoadState>
    </Dialog>
  )
}

function outcomeOf({ state, attempts, error }: Delivery): string {
  if (state === 'DELIVERED') return 'Delivered'
  const tried = `${attempts} ${attempts === 1 ? 'attempt' : 'attempts'}. ${error ?? ''}`
  return state === 'FAILED' ? `Given up after ${tried}` : `Waiting after ${tried}`
}

function Deletion({ webhook, onClose }: { readonly webhook: Webhook; readonly onClose: () => void }) {
  const team = useTeam()
  const remove = useCall('deleteWebhook')
  const action = useAction(async () => {
    await remove.mutateAsync({ params: { teamId: team.id, webhookId: webhook.id } })
    say('Deleted')
    onClose()
  })
  return (
    <AlertDialog
      open
      onClose={onClose}
      title={`Delete ${webhook.name}`}
      description="Its waiting deliveries are deleted too."
    >
      <DialogForm action={action} verb="Delete webhook" look="destroy" onClose={onClose} />
    </AlertDialog>
  )
}
