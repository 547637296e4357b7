// Ensures that a query reads the columns for which it was confined. Before the query, in the same write to the socket,
// the transaction describes each table by a prepared SELECT of the columns, which is never executed. The description
// locks the table until the transaction ends, because ALTER and DROP need ACCESS EXCLUSIVE (PostgreSQL manual, 13.3.1).
// The query therefore reads exactly the described columns.
import type { ReadTable } from '../confined-query.ts'
import { identifier, qualified } from '../quote.ts'
import { readFields, type Field } from './protocol-messages.ts'
import type { Expectation } from './wire.ts'

/**
 * Returns the statement that describes a table's columns. Its columns are not qualified: see wrap() in
 * guard/walk/walk-from.ts.
 */
export function heldSql({ schema, table, columns }: ReadTable): string {
  return `SELECT ${columns.map(({ name }) => identifier(name)).join(', ')} FROM ${qualified([schema, table])}`
}

/** Returns a key for a table's columns that changes with a rename. */
export function heldKey({ oid, columns }: ReadTable): string {
  return `${oid} ${columns.map(({ number, typeOid, name }) => `${number} ${typeOid} ${identifier(name)}`).join(' ')}`
}

/** The last description of each table that was as expected. A description with the same bytes is not parsed again. */
const seen = new WeakMap<ReadTable, Buffer>()

/** Compares the server's descriptions with the columns for which the query was confined. */
export class Held implements Expectation {
  readonly #tables: readonly ReadTable[]
  #described = 0

  constructor(tables: readonly ReadTable[]) {
    this.#tables = tables
  }

  /** True if every table was described, and each description was as expected. */
  get isWhole(): boolean {
    return this.#described === this.#tables.length
  }

  next(from: Buffer, start: number, end: number): boolean {
    const table = this.#tables[this.#described]
    if (table === undefined) return false
    const known = seen.get(table)
    if (known === undefined || known.compare(from, start, end) !== 0) {
      if (!isSame(table, readFields(from, start, end))) return false
      // Copy: the socket's buffer is reused.
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
