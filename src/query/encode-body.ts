// Writes the answer to a query as one JSON text. The rows are JSON already, so they are inserted unchanged.
import type { Rows } from '../drivers/driver.ts'

/** The JSON before the rows, by the `columns` object, which is the same for all answers of a prepared statement. */
const heads = new WeakMap<Rows['columns'], string>()

export function encode(rows: Rows, durationMs: number): string | LentJson {
  const head = headOf(rows.columns)
  const about = `"rowCount":${rows.rowCount},"truncated":${rows.truncated},"durationMs":${rounded(durationMs)}`
  if (typeof rows.rows === 'string') return `${head}${rows.rows},${about}}`
  return new LentJson(head, rows.rows, `,${about}}`, rows.release)
}

/** A long answer in three parts, so that its rows need not be copied. Their memory may be lent (see Rows). */
export class LentJson {
  #parts: readonly [string, Buffer, string] | null
  readonly #release: Rows['release']
  readonly byteLength: number

  constructor(head: string, rows: Buffer, tail: string, release: Rows['release']) {
    this.#parts = [head, rows, tail]
    this.#release = release
    this.byteLength = Buffer.byteLength(head) + rows.length + Buffer.byteLength(tail)
  }

  get parts(): readonly (string | Buffer)[] {
    if (this.#parts === null) throw new Error('the memory of this answer was given back')
    return this.#parts
  }

  /** Gives the memory back. Only the first call has an effect. */
  release(): void {
    if (this.#parts === null) return
    this.#parts = null
    this.#release?.()
  }

  toString(): string {
    return this.parts.join('')
  }
}

function headOf(columns: Rows['columns']): string {
  const known = heads.get(columns)
  if (known !== undefined) return known
  const head = `{"columns":${JSON.stringify(columns)},"rows":`
  heads.set(columns, head)
  return head
}

export function rounded(durationMs: number): number {
  return Math.round(durationMs * 1000) / 1000
}
