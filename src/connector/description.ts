// Reads a description table by table. The whole JSON of a large datasource has megabytes; parsing it at once would block
// the event loop. The door reads REST's own bytes, so it cannot show more than REST does.
import type { z } from 'zod'
import { Description as DescriptionSchema, ExposedTable } from '../contract/schemas.ts'
import type { Prebuilt } from '../operations/definitions.ts'

export type Table = z.infer<typeof ExposedTable>

/** A table's name and rows, without reading its columns in full. */
export interface Description {
  readonly head: z.infer<typeof Head>
  /** Changes when the description changes. */
  readonly version: string
  readonly tableCount: number
  table(index: number): Table
}

const Head = DescriptionSchema.omit({ tables: true })

export function descriptionOf({ json, etag = '', starts = [] }: Prebuilt): Description {
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

/** `]}` after the last table. */
const TAIL = 2
