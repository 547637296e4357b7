// Writes the aggregate command of a small query as one message.
import type { BsonDocument } from '../query.ts'
import type { Login } from './connect.ts'
import type { Running } from './run.ts'
import { FRAME } from './wire.ts'
import { BsonBytes } from './write-bson.ts'

/** What an aggregate is not given by its query. */
export const ALWAYS = { allowDiskUse: false, readConcern: { level: 'local' as const }, comment: 'vitrine' }

export interface Aggregate {
  readonly collection: string
  readonly form: readonly BsonDocument[]
  readonly batchSize: number
  readonly maxTimeMS: number
}

/** Writes commands for one borrowed connection. */
export class CommandWriter {
  readonly #bytes: BsonBytes
  /** The fields that are the same in all commands, as BSON. */
  readonly #rest: Uint8Array

  constructor({ library, database }: Login, session: Running['session'], readPreference: object | null) {
    this.#bytes = new BsonBytes(library)
    const rest = library.BSON.serialize({
      ...ALWAYS,
      ...(session === null ? {} : { lsid: session.id }),
      ...(readPreference === null ? {} : { $readPreference: readPreference }),
      $db: database,
    })
    // Without the length and the end of the document.
    this.#rest = rest.subarray(4, -1)
  }

  /** A message whose frame Wire.exchange() fills in. */
  message({ collection, form, batchSize, maxTimeMS }: Aggregate): Buffer {
    const out = this.#bytes
    out.begin(FRAME)
    const whole = out.open()
    out.field('aggregate', collection)
    out.field('pipeline', form)
    out.field('cursor', { batchSize })
    out.field('maxTimeMS', maxTimeMS)
    out.raw(this.#rest)
    out.close(whole)
    return out.bytes()
  }
}
