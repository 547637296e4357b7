// Converts the pages of a result to one JSON array of rows while they arrive, and cuts it at the limits. The rows of a
// page are bytes and never become a tree of objects.
import { z } from 'zod'
import type { ResultColumn, Rows } from '../../driver.ts'
import type { JsonBytes } from '../../json-bytes.ts'
import { rowWriter, type WriteRow } from './write-cells.ts'
import { jsonOf, Unreadable } from './http-exchange.ts'
import { firstOf, isArray, membersOf, nextOf, skipSpace } from './json-scan.ts'
import { jobErrorOf } from './error-response.ts'
import { SlicePace, type TimeSlices } from './time-slices.ts'
import { readSchema } from './schema-types.ts'

const OPEN = 0x5b
const CLOSE = 0x5d
const COMMA = 0x2c

export interface Page {
  readonly isComplete: boolean
  readonly job: { readonly id: string; readonly location: string | null } | null
  readonly schema: unknown
  readonly pageToken: string | null
  /** The number of rows in the whole result. Null if the page does not say so. */
  readonly totalRows: number | null
  /** The position of the array of rows. Null if there is none. */
  readonly rowsAt: number | null
  readonly hasLongText: boolean
  readonly bytes: Buffer
}

const Head = z.object({
  jobComplete: z.boolean(),
  jobReference: z
    .object({
      jobId: z.string().regex(/^[\w-]{1,1024}$/),
      location: z
        .string()
        .regex(/^[A-Za-z0-9-]{1,64}$/)
        .optional()
        .catch(undefined),
    })
    .optional()
    .catch(undefined),
  schema: z.unknown().optional(),
  pageToken: z.string().min(1).max(16_384).optional(),
  totalRows: z
    .union([
      z
        .string()
        .regex(/^\d{1,18}$/)
        .transform(Number),
      z.int().min(0),
    ])
    .optional(),
})

/** Limits everything in a page except the rows. The schema of 10,000 columns has a megabyte. */
const HEAD_BYTES_MAX = 8 * 1024 * 1024

/**
 * `bytes` is a response of jobs.query or getQueryResults. Throws Unreadable, ErrorResponse if the job failed, and the
 * errors of TimeSlices.run().
 */
export async function readPage(bytes: Buffer, slices: TimeSlices): Promise<Page> {
  let hasLongText = false
  const onLong = (): void => {
    hasLongText = true
  }
  const { members, end: pageEnd } = await slices.run(membersOf(bytes, skipSpace(bytes, 0), onLong))
  if (skipSpace(bytes, pageEnd) !== bytes.length) throw new Unreadable('bytes after a page')
  const head: Record<string, unknown> = Object.create(null)
  let rowsAt: number | null = null
  let headBytes = 0
  for (const { key, start: at, end } of members) {
    if (key === 'rows') {
      rowsAt = isArray(bytes, at) ? at : null
      continue
    }
    headBytes += end - at
    if (headBytes > HEAD_BYTES_MAX)
      throw new Unreadable(`a page with over ${HEAD_BYTES_MAX} bytes in addition to its rows`)
    head[key] = jsonOf(bytes.subarray(at, end))
  }
  const page = Head.safeParse(head)
  const refused = jobErrorOf(head, head['schema'] !== undefined)
  if (refused !== null && head['jobComplete'] !== false) throw refused
  if (!page.success) throw new Unreadable('a page without jobComplete')
  const { jobComplete, jobReference, schema, pageToken, totalRows } = page.data
  return {
    isComplete: jobComplete,
    job: jobReference === undefined ? null : { id: jobReference.jobId, location: jobReference.location ?? null },
    schema,
    pageToken: pageToken ?? null,
    totalRows: totalRows ?? null,
    rowsAt,
    hasLongText,
    bytes,
  }
}

/**
 * Returns the caller's name for a generated name. If a query returns a column twice, BigQuery adds a number
 * (_vt_suffix_1), which is kept. Any other name stays unchanged.
 */
function shownName(name: string, names: ReadonlyMap<string, string>): string {
  const [, own = name, number = ''] = /^(.*?)(_\d{1,4})?$/s.exec(name) ?? []
  const theirs = names.get(name) ?? names.get(own)
  if (theirs === undefined) return name
  return names.has(name) ? theirs : theirs + number
}

export interface Caps {
  readonly rowCap: number
  /** Limits the JSON of all rows. */
  readonly bytesMax: number
}

/** `short` writes the rows of a page that has no long texts. `long` writes any rows. */
interface Writers {
  readonly short: WriteRow
  readonly long: WriteRow
}

export class Result {
  readonly #caps: Caps
  readonly #out: JsonBytes
  readonly #names: ReadonlyMap<string, string>
  #columns: readonly ResultColumn[] = []
  #writers: Writers | null = null
  #rows = 0
  #truncated = false

  /** Overwrites `out`. */
  constructor(caps: Caps, names: ReadonlyMap<string, string>, out: JsonBytes) {
    this.#caps = caps
    this.#names = names
    this.#out = out
    out.length = 0
    out.byte(OPEN)
  }

  /**
   * Adds the next page. Returns false if no more rows are wanted or available. Throws Unreadable, and the errors of
   * TimeSlices.run().
   */
  async add(page: Page, slices: TimeSlices): Promise<boolean> {
    return await slices.run(this.#add(page))
  }

  *#add(page: Page): Generator<undefined, boolean> {
    const pace = new SlicePace()
    const { short, long } = (this.#writers ??= this.#begin(page))
    const writeRow = page.hasLongText ? long : short
    const out = this.#out
    const json = page.bytes
    for (let at = page.rowsAt === null ? null : firstOf(json, page.rowsAt); at !== null;) {
      if (this.#rows >= this.#caps.rowCap) return this.#cut()
      const before = out.length
      if (this.#rows > 0) out.byte(COMMA)
      const written = writeRow(json, at, out, pace)
      const end = typeof written === 'number' ? written : yield* written
      if (out.length + 1 > this.#caps.bytesMax) {
        out.length = before
        return this.#cut()
      }
      this.#rows++
      at = nextOf(json, end)
      if (pace.isDue(end)) yield* out.nextSlice()
    }
    if (page.totalRows !== null && page.totalRows > this.#caps.rowCap) this.#truncated = true
    if (page.pageToken !== null) return true
    // Fewer rows have come than BigQuery announced.
    if (page.totalRows !== null && page.totalRows > this.#rows) this.#truncated = true
    return false
  }

  /** How many rows still fit, plus one to find out whether there are more rows. */
  get wanted(): number {
    return this.#caps.rowCap - this.#rows + 1
  }

  finish(): Rows {
    this.#out.byte(CLOSE)
    return { columns: this.#columns, rows: this.#out.json(), rowCount: this.#rows, truncated: this.#truncated }
  }

  #begin({ schema }: Page): Writers {
    const fields = readSchema(schema)
    // Every query has a column. Without this check, a missing schema would look like an empty result.
    if (fields.length === 0) throw new Unreadable('a result without columns')
    this.#columns = fields.map(({ name, text }) => ({ name: shownName(name, this.#names), dataType: text }))
    const types = fields.map(({ type }) => type)
    return { short: rowWriter(types, false), long: rowWriter(types, true) }
  }

  #cut(): false {
    this.#truncated = true
    return false
  }
}
