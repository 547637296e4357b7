// Joins the JSON of thousands of tables into one buffer, in slices that do not block the event loop for long.
import type { CatalogTable } from '../drivers/driver.ts'
import { inSlices } from '../event-loop-slices.ts'

export interface JoinedTables {
  readonly json: Buffer
  readonly starts: readonly number[]
}

/** Joins `head`, the tables with commas between them, and `tail`. `textsOf` returns the JSON of one table, in parts. */
export async function joinedTables(
  head: string,
  tables: readonly CatalogTable[],
  tail: string,
  textsOf: (table: CatalogTable) => readonly string[],
): Promise<JoinedTables> {
  const turn = inSlices()
  const bytes = new Bytes()
  const starts: number[] = []
  bytes.add(head)
  for (const [n, table] of tables.entries()) {
    if (n > 0) bytes.add(',')
    starts.push(bytes.length)
    for (const text of textsOf(table)) bytes.add(text)
    await turn()
  }
  bytes.add(tail)
  return { json: bytes.done(), starts }
}

const BYTES_MIN = 64 * 1024
const CHAR_BYTES = 3

class Bytes {
  #all = Buffer.allocUnsafe(BYTES_MIN)
  #length = 0

  get length(): number {
    return this.#length
  }

  add(text: string): void {
    const needed = this.#length + text.length * CHAR_BYTES
    if (needed > this.#all.length) {
      const grown = Buffer.allocUnsafe(Math.max(needed, this.#all.length * 2))
      this.#all.copy(grown, 0, 0, this.#length)
      this.#all = grown
    }
    this.#length += this.#all.write(text, this.#length)
  }

  /** Returns a copy without the unused bytes, because the result is cached. */
  done(): Buffer {
    return Buffer.copyBytesFrom(this.#all, 0, this.#length)
  }
}
