// Accepts many proposed texts together: for one table or all tables, for some kinds or all kinds. Stale texts stay
// proposed.
import { useState } from 'react'
import { useCall } from '../../../api/queries.ts'
import { Dialog } from '../../../parts/Dialog.tsx'
import { DialogForm } from '../../../parts/DialogForm.tsx'
import { Checkbox, Group, Radio } from '../../../parts/Field.tsx'
import { say } from '../../../parts/StatusMessages.tsx'
import { counted } from '../../../parts/format.ts'
import { useAction } from '../../../parts/useAction.ts'
import { useDatasource } from '../Datasource.tsx'
import { KINDS, proposedIn, type Kind, type TableTexts } from './texts.ts'

interface AcceptManyProps {
  readonly open: boolean
  readonly onClose: () => void
  readonly tables: readonly TableTexts[]
  readonly current: TableTexts
  readonly version: number
}

export function AcceptMany({ open, onClose, ...rest }: AcceptManyProps) {
  return (
    <Dialog
      open={open}
      onClose={onClose}
      title="Accept proposed texts"
      description="Agents see accepted texts after you publish. Texts whose columns have changed stay proposed, for you to review."
    >
      {open && <Form {...rest} onClose={onClose} />}
    </Dialog>
  )
}

const KIND_WORDS: Readonly<Record<Kind, string>> = {
  summary: 'Summaries',
  columns: 'Columns',
  statements: 'Statements',
  examples: 'Examples',
}

function Form({ tables, current, version, onClose }: Omit<AcceptManyProps, 'open'>) {
  const { teamId, id } = useDatasource()
  const [everywhere, setEverywhere] = useState(true)
  const [kinds, setKinds] = useState<ReadonlySet<Kind>>(new Set(KINDS))
  const scope = everywhere ? tables : [current]
  const count = proposedIn(scope, kinds)
  const accept = useCall('acceptDocumentation')
  const action = useAction(async () => {
    const { schema, table } = current
    const body = { version, kinds: [...kinds], ...(everywhere ? {} : { tables: [{ schema, table }] }) }
    const { accepted, stale } = await accept.mutateAsync({ params: { teamId, id }, body })
    const sum = Object.values(accepted).reduce((all, each) => all + each, 0)
    say(`Accepted ${counted(sum, 'text')}${stale > 0 ? `, left ${counted(stale, 'stale text')}` : ''}`)
    onClose()
  })
  return (
    <DialogForm
      action={action}
      verb={count === 0 ? 'Accept' : `Accept ${counted(count, 'text')}`}
      disabled={count === 0}
      onClose={onClose}
    >
      <Group label="Of" role="radiogroup">
        <Radio name="scope" label="All tables" checked={everywhere} onChange={() => setEverywhere(true)} />
        <Radio
          name="scope"
          label={
            <>
              Only <bdi>{current.table}</bdi>
            </>
          }
          checked={!everywhere}
          onChange={() => setEverywhere(false)}
        />
      </Group>
      <Group label="Texts">
        {KINDS.map((kind) => (
          <Checkbox
            key={kind}
            label={`${KIND_WORDS[kind]} (${proposedIn(scope, new Set([kind]))})`}
            checked={kinds.has(kind)}
            onChange={() => setKinds(kinds.symmetricDifference(new Set([kind])))}
          />
        ))}
      </Group>
    </DialogForm>
  )
}
