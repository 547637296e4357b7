import { Minus, Plus } from 'lucide-react'
import { Icon } from '../../../parts/Icon.tsx'
import { counted } from '../../../parts/format.ts'
import { columnCount, isEmpty, type Difference, type TableNames } from './choice.ts'

export function ExposureDifference({ of }: { readonly of: Difference }) {
  if (isEmpty(of)) return <p className="soft">Nothing is changed.</p>
  return (
    <div className="stack">
      <Side label="Added" tables={of.added} />
      <Side label="Removed" tables={of.removed} />
    </div>
  )
}

/** Up to this number of columns, each column has its own line. With more columns, each table has one line. */
const COLUMNS_MAX = 40
const TABLES_MAX = 100
const NAMES_MAX = 8

function Side({ label, tables }: { readonly label: 'Added' | 'Removed'; readonly tables: readonly TableNames[] }) {
  const columns = columnCount(tables)
  if (columns === 0) return null
  const lines = columns <= COLUMNS_MAX ? tables.flatMap(eachColumn) : tables.slice(0, TABLES_MAX).map(together)
  const rest = columns <= COLUMNS_MAX ? 0 : tables.length - lines.length
  const icon = label === 'Added' ? Plus : Minus
  return (
    <section className="stack close">
      <h3>
        {label} <span className="tiny">{counted(columns, 'column')}</span>
      </h3>
      <ul className={label === 'Added' ? 'changes added' : 'changes removed'} aria-label={label}>
        {lines.map((line) => (
          <li key={line.key}>
            <Icon of={icon} />
            <bdi>{line.words}</bdi>
          </li>
        ))}
        {rest > 0 && <li className="soft">and {counted(rest, 'more table', 'more tables')}</li>}
      </ul>
    </section>
  )
}

interface Line {
  readonly key: string
  readonly words: string
}

const eachColumn = ({ schema, table, columns }: TableNames): Line[] =>
  columns.map((column) => ({ key: `${schema}\0${table}\0${column}`, words: `${schema}.${table}.${column}` }))

function together({ schema, table, columns }: TableNames): Line {
  const rest = columns.length - NAMES_MAX
  const names = columns.slice(0, NAMES_MAX).join(', ')
  const words = `${schema}.${table}: ${names}${rest > 0 ? ` and ${rest} more` : ''}`
  return { key: `${schema}\0${table}`, words }
}
