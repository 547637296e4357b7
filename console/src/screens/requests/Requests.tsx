// The open requests of members. A manager exposes the object, or declines the request with a note.
import { Eye, Hand } from 'lucide-react'
import { useState } from 'react'
import { useCall, useRead } from '../../api/queries.ts'
import type { Answer } from '../../api/types.ts'
import { useDatasourceNames } from '../../frame/names-by-id.ts'
import { useTeam } from '../../frame/current-team.ts'
import { Button, LinkButton } from '../../parts/Button.tsx'
import { Dialog } from '../../parts/Dialog.tsx'
import { DialogForm } from '../../parts/DialogForm.tsx'
import { TextArea } from '../../parts/Field.tsx'
import { say } from '../../parts/StatusMessages.tsx'
import { Table } from '../../parts/Table.tsx'
import { Tag } from '../../parts/Tag.tsx'
import { Time } from '../../parts/Time.tsx'
import { useAction } from '../../parts/useAction.ts'
import { LongText, Name } from '../../parts/UntrustedText.tsx'

type Request = Answer<'listRequests'>[number]

export function Requests() {
  const team = useTeam()
  const open = useRead('listRequests', { params: { teamId: team.id }, query: { state: 'OPEN' } }).data ?? []
  const names = useDatasourceNames()
  const [declining, decline] = useState<Request | null>(null)
  if (open.length === 0) return null
  return (
    <section className="stack close" aria-label="Requests">
      <h2 className="row">
        Requests <Tag icon={Hand}>{open.length}</Tag>
      </h2>
      <Table
        label="Requests"
        rows={open}
        keyOf={({ id }) => id}
        columns={[
          {
            head: 'Asked for',
            kind: 'main',
            cell: ({ blocked }) => <Name>{`${blocked.kind} ${blocked.name}`}</Name>,
          },
          {
            head: 'Datasource',
            kind: 'quiet',
            cell: ({ datasourceId }) => <Name>{names.get(datasourceId) ?? ''}</Name>,
          },
          { head: 'By', cell: ({ name }) => <Name>{name}</Name> },
          { head: 'Why', cell: ({ why }) => <LongText>{why}</LongText> },
          { head: 'When', kind: 'quiet', cell: ({ createdAt }) => <Time at={createdAt} /> },
          {
            head: '',
            kind: 'acts',
            cell: (request) => (
              <span className="row end">
                <Button small look="quiet" onClick={() => decline(request)}>
                  Decline
                </Button>
                <LinkButton
                  small
                  icon={Eye}
                  to="/t/$team/datasources/$id/exposure"
                  params={{ team: team.slug, id: request.datasourceId }}
                  search={{ from: request.auditId }}
                >
                  Expose from this
                </LinkButton>
              </span>
            ),
          },
        ]}
      />
      <Dialog
        open={declining !== null}
        onClose={() => decline(null)}
        title="Decline the request"
        description="The exposure does not change. Your note is stored with the request."
      >
        {declining !== null && <Decline request={declining} onClose={() => decline(null)} />}
      </Dialog>
    </section>
  )
}

function Decline({ request, onClose }: { readonly request: Request; readonly onClose: () => void }) {
  const team = useTeam()
  const end = useCall('closeRequest')
  const [note, setNote] = useState('')
  const action = useAction(async () => {
    const params = { teamId: team.id, requestId: request.id }
    await end.mutateAsync({ params, body: { resolution: 'DECLINED', ...(note.trim() === '' ? {} : { note }) } })
    say('Request declined')
    onClose()
  })
  return (
    <DialogForm action={action} verb="Decline request" onClose={onClose}>
      <p>
        <Name>{request.name}</Name>: <LongText>{request.why}</LongText>
      </p>
      <TextArea label="Note" value={note} maxLength={500} onChange={(event) => setNote(event.target.value)} />
    </DialogForm>
  )
}
