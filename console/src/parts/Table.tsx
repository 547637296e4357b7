// A table of rows. On a narrow screen, each row is shown as a block of lines, but stays a table row for assistive
// technology.
import type { Key, ReactNode } from 'react'
import { classes } from './class-names.ts'

export interface Column<R> {
  /** The head of the column. Empty for actions. */
  readonly head: string
  readonly cell: (row: R) => ReactNode
  readonly kind?: 'main' | 'number' | 'quiet' | 'acts'
}

interface TableProps<R> {
  readonly label: string
  readonly columns: readonly Column<R>[]
  readonly rows: readonly R[]
  readonly keyOf: (row: R) => Key
  /** True for a selected row, for example because its details are open. */
  readonly isCurrent?: (row: R) => boolean
}

const CLASS = { main: 'main-cell', number: 'number', quiet: 'quiet-cell', acts: 'acts' } as const

export function Table<R>({ label, columns, rows, keyOf, isCurrent }: TableProps<R>) {
  return (
    <div className="table-place stacks">
      <table className="table" role="table" aria-label={label}>
        <thead role="rowgroup">
          <tr role="row">
            {columns.map(({ head, kind }) => (
              <th key={head} role="columnheader" scope="col" className={kind === 'number' ? 'number' : undefined}>
                {head === '' ? <span className="hidden-words">Actions</span> : head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {rows.map((row) => (
            <tr key={keyOf(row)} role="row" aria-current={isCurrent?.(row) === true ? true : undefined}>
              {columns.map(({ head, kind, cell }, n) => (
                <td
                  key={head}
                  role="cell"
                  data-label={n === 0 || head === '' ? undefined : head}
                  className={classes(kind !== undefined && CLASS[kind])}
                >
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
