// Holds a query to the columns that it was confined for. Each table is described in the query's own transaction, before
// the query and in the same write: a prepared SELECT of those columns that is never executed. Describing it takes the
// table's lock until the transaction ends, so the query reads the very columns that were described (PostgreSQL manual,
// 13.3.1: every ALTER and DROP of them needs ACCESS EXCLUSIVE).
import type { ReadTable } from '../query.ts'
import { identifier, qualified } from '../quote.ts'
import { readFields, type Field } from './messages.ts'
import type { Expectation } from './wire.ts'

/** The statement that stands for a table's columns. Its columns are not qualified: see wrap() in guard/walk-from.ts. */
export function heldSql({ schema, table, columns }: ReadTable): string {
  return `SELECT ${columns.map(({ name }) => identifier(name)).join(', ')} FROM ${qualified([schema, table])}`
}

/** What tells one table's columns from another's, through renames too. */
export function heldKey({ oid, columns }: ReadTable): string {
  return `${oid} ${columns.map(({ number, typeOid, name }) => `${number} ${typeOid} ${identifier(name)}`).join(' ')}`
}

/** The last description of a table that was as expected: the same bytes need not be read again. */
const seen = new WeakMap<ReadTable, Buffer>()

/** Compares what the server describes with what the query was confined for, table by table. */
export class Held implements Expectation {
  readonly #tables: readonly ReadTable[]
  #described = 0

  constructor(tables: readonly ReadTable[]) {
    this.#tables = tables
  }

  /** Every table was described, and is as it was at introspection. */
  get isWhole(): boolean {
    return this.#described === this.#tables.length
  }

  next(from: Buffer, start: number, end: number): boolean {
    const table = this.#tables[this.#described]
    if (table === undefined) return false
    const known = seen.get(table)
    if (known === undefined || known.compare(from, start, end) !== 0) {
      if (!isSame(table, readFields(from, start, end))) return false
      // The socket's buffer is used again.
      seen.set(table, Buffer.from(from.subarray(start, end)))
    }
    this.#described++
    return true
  }
}

function isSame({ oid, columns }: ReadTable, fields: readonly Field[]): boolean {
  return (
    fields.length === columns.length &&
    columns.every(({ name, number, typeOid }, at) => {
      const field = fields[at]
      return field?.tableOid === oid && field.number === number && field.name === name && field.typeOid === typeOid
    })
  )
}
