// Shows exposed tables and columns that are no longer in the database. A save keeps their names, because they may come
// back, but the person can drop the names.
import { Button } from '../../../parts/Button.tsx'
import { Notice } from '../../../parts/Notice.tsx'
import { counted } from '../../../parts/format.ts'
import { tableKey, withColumns, type Choice, type Exposure } from './choice.ts'

interface GoneProps {
  readonly gone: Exposure['gone']
  readonly choice: Choice
  readonly onDrop: (choice: Choice) => void
}

const SHOWN = 5

export function GoneNames({ gone, choice, onDrop }: GoneProps) {
  const kept = gone.filter(({ schema, table, column }) => {
    const columns = choice.get(tableKey(schema, table))
    return column === undefined ? columns !== undefined : columns?.has(column) === true
  })
  if (kept.length === 0) return null
  const names = kept.map(({ schema, table, column }) =>
    [schema, table, column].filter((each) => each !== undefined).join('.'),
  )
  const drop = () => {
    const changes = kept.map(({ schema, table, column }) => {
      const key = tableKey(schema, table)
      return [key, column === undefined ? [...(choice.get(key) ?? [])] : [column]] as const
    })
    onDrop(withColumns(choice, changes, false))
  }
  return (
    <Notice role="note">
      <p>
        {counted(kept.length, 'exposed name is', 'exposed names are')} no longer in the database:{' '}
        <bdi>{names.slice(0, SHOWN).join(', ')}</bdi>
        {names.length > SHOWN && ` and ${names.length - SHOWN} more`}. Names that come back are shown again.
      </p>
      <div className="row conflict-acts">
        <Button small onClick={drop}>
          Drop these names
        </Button>
      </div>
    </Notice>
  )
}
