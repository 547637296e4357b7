// Parses the tables of a description one by one, because parsing megabytes of JSON at once would block the event loop.
// The input is the JSON of the REST API, so the compact text cannot show more than REST does.
import type { z } from 'zod'
import { Description as DescriptionSchema, ExposedTable } from '../contract/schemas.ts'

export type Table = z.infer<typeof ExposedTable>

export interface DescriptionJson {
  readonly json: string | Buffer
  readonly etag?: string
  /** The byte offset of each table in `json`. */
  readonly starts?: readonly number[]
}

export interface Description {
  readonly head: z.infer<typeof Head>
  readonly version: string
  readonly tableCount: number
  table(index: number): Table
}

const Head = DescriptionSchema.omit({ tables: true })

export function descriptionOf({ json, etag = '', starts = [] }: DescriptionJson): Description {
  const bytes = typeof json === 'string' ? Buffer.from(json) : json
  const [first = bytes.length - TAIL] = starts
  return {
    head: Head.parse(JSON.parse(`${bytes.toString('utf8', 0, first)}]}`)),
    version: etag,
    tableCount: starts.length,
    table(index) {
      const from = starts[index] ?? first
      const next = starts[index + 1]
      const to = next === undefined ? bytes.length - TAIL : next - 1
      return ExposedTable.parse(JSON.parse(bytes.toString('utf8', from, to)))
    },
  }
}

/** The bytes `]}` after the last table. */
const TAIL = 2
