// Makes sure that a query reads the columns for which the guard confined it. Before the query, in the same write to the
// socket, the transaction prepares a SELECT of the columns of each table. The server describes them and locks the table
// until the transaction ends, so ALTER and DROP, which need ACCESS EXCLUSIVE, must wait (PostgreSQL manual, 13.3.1).
import type { ReadTable } from '../confined-query.ts'
import { identifier, qualified } from '../quote.ts'
import { readFields, type Field } from './protocol-messages.ts'
import type { Expectation } from './wire.ts'

/** Returns a SELECT of the columns. wrap() in guard/walk/walk-from.ts says why they are not qualified. */
export function heldSql({ schema, table, columns }: ReadTable): string {
  return `SELECT ${columns.map(({ name }) => identifier(name)).join(', ')} FROM ${qualified([schema, table])}`
}

/** Returns a key for the columns of a table. It changes when a column is renamed. */
export function heldKey({ oid, columns }: ReadTable): string {
  return `${oid} ${columns.map(({ number, typeOid, name }) => `${number} ${typeOid} ${identifier(name)}`).join(' ')}`
}

/** For each table, the last description that was correct. The same bytes need not be parsed again. */
const seen = new WeakMap<ReadTable, Buffer>()

/** Compares the server's descriptions with the expected columns. */
export class Held implements Expectation {
  readonly #tables: readonly ReadTable[]
  #described = 0

  constructor(tables: readonly ReadTable[]) {
    this.#tables = tables
  }

  /** True if every table was described as expected. */
  get isWhole(): boolean {
    return this.#described === this.#tables.length
  }

  next(from: Buffer, start: number, end: number): boolean {
    const table = this.#tables[this.#described]
    if (table === undefined) return false
    const known = seen.get(table)
    if (known === undefined || known.compare(from, start, end) !== 0) {
      if (!isSame(table, readFields(from, start, end))) return false
      // A copy, because the buffer of the socket is reused.
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
