import type { AuditItem } from '../../api/types.ts'
import { Table } from '../../parts/Table.tsx'
import { LongText, Name } from '../../parts/UntrustedText.tsx'

type Fields = NonNullable<AuditItem['changes']>

export function ChangedFields({ changes }: { readonly changes: Fields }) {
  const rows = Object.entries(changes).map(([field, change]) => ({ field, ...wordsOf(change) }))
  return (
    <Table
      label="Changes"
      rows={rows}
      keyOf={({ field }) => field}
      columns={[
        { head: 'Field', kind: 'main', cell: ({ field }) => <Name>{field}</Name> },
        { head: 'Before', kind: 'quiet', cell: ({ before }) => <LongText>{before}</LongText> },
        { head: 'After', cell: ({ after }) => <LongText>{after}</LongText> },
      ]}
    />
  )
}

function wordsOf(change: Fields[string]): { readonly before: string; readonly after: string } {
  if ('from' in change) return { before: valueWords(change.from), after: valueWords(change.to) }
  const { removed, added, changed = [], removedCount, addedCount } = change
  return {
    before: listWords('removed', removed, removedCount),
    after: [listWords('added', added, addedCount), listWords('changed', changed)]
      .filter((words) => words !== '')
      .join('; '),
  }
}

function listWords(verb: string, names: readonly string[], count = names.length): string {
  if (count === 0) return ''
  const more = count > names.length ? `, and ${count - names.length} more` : ''
  return `${verb}: ${names.join(', ')}${more}`
}

function valueWords(value: unknown): string {
  if (value === null) return 'none'
  return Array.isArray(value) ? value.join(', ') : String(value)
}
