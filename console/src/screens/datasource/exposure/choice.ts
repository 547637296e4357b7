// A Choice is the set of selected tables and columns of a database. It also contains saved names that are no longer in
// the database, because a save keeps them. A Choice is immutable, and two Choices share their equal sets where
// possible, which makes comparisons cheap.
import type { Answer } from '../../../api/types.ts'

export interface TableNames {
  readonly schema: string
  readonly table: string
  readonly columns: readonly string[]
}

/** The keys are made by tableKey(). No set is empty. */
export type Choice = ReadonlyMap<string, ReadonlySet<string>>

export type Exposure = Answer<'getExposure'>

/** No name contains NUL, so NUL can separate the names. */
export const tableKey = (schema: string, table: string) => `${schema}\0${table}`

export const choiceOf = (tables: readonly TableNames[]): Choice =>
  new Map(tables.map(({ schema, table, columns }) => [tableKey(schema, table), new Set(columns)]))

export const tablesOf = (choice: Choice): TableNames[] => [...choice].map(([key, columns]) => named(key, columns))

function named(key: string, columns: Iterable<string>): TableNames {
  const [schema = '', table = ''] = key.split('\0')
  return { schema, table, columns: [...columns] }
}

export interface Difference {
  readonly added: readonly TableNames[]
  readonly removed: readonly TableNames[]
}

/** Returns the columns that only `to` has, and the columns that only `from` has. */
export function differenceOf(from: Choice, to: Choice): Difference {
  return { added: beyond(from, to), removed: beyond(to, from) }
}

function beyond(from: Choice, to: Choice): TableNames[] {
  const tables: TableNames[] = []
  for (const [key, columns] of to) {
    const before = from.get(key)
    if (before === columns) continue
    const more = [...columns].filter((column) => before?.has(column) !== true)
    if (more.length > 0) tables.push(named(key, more))
  }
  return tables
}

/** Returns the choice with the columns added, or removed if `on` is false. */
export function withColumns(
  choice: Choice,
  changes: Iterable<readonly [string, Iterable<string>]>,
  on: boolean,
): Choice {
  const next = new Map(choice)
  for (const [key, columns] of changes) {
    const set = new Set(next.get(key))
    for (const column of columns) {
      if (on) set.add(column)
      else set.delete(column)
    }
    if (set.size > 0) next.set(key, set)
    else next.delete(key)
  }
  return next
}

const keyed = (tables: readonly TableNames[]) =>
  tables.map(({ schema, table, columns }) => [tableKey(schema, table), columns] as const)

/** Applies a change to a choice, which may differ from the choice in which the change was made. */
export const apply = (choice: Choice, { added, removed }: Difference): Choice =>
  withColumns(withColumns(choice, keyed(removed), false), keyed(added), true)

export const isEmpty = ({ added, removed }: Difference) => added.length === 0 && removed.length === 0

export const columnCount = (tables: readonly TableNames[]) =>
  tables.reduce((sum, { columns }) => sum + columns.length, 0)
