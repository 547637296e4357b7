import type * as mongodb from 'mongodb'
import { Scalar, type Bson, type BsonDocument, type Find } from '../confined-query.ts'
import type { Login } from './connect.ts'
import { FRAME } from './wire.ts'
import { BsonBytes } from './write-bson.ts'

export const ALWAYS = { allowDiskUse: false, readConcern: { level: 'local' as const }, comment: 'vitrine' }

export interface Command {
  readonly collection: string
  /** The stages of an aggregate, or the fields of a find command. */
  readonly form: readonly BsonDocument[] | Find
  readonly batchSize: number
  readonly maxTimeMS: number
}

export class CommandWriter {
  readonly #bytes: BsonBytes
  /** The fields of all find and aggregate commands, as BSON. */
  readonly #rest: Uint8Array
  /** The fields of every command, even one that reads no data. */
  readonly #session: Uint8Array

  constructor({ library, database }: Login, session: mongodb.ClientSession | null, readPreference: object | null) {
    this.#bytes = new BsonBytes(library)
    const rest = library.BSON.serialize({
      ...ALWAYS,
      ...(session === null ? {} : { lsid: session.id }),
      ...(readPreference === null ? {} : { $readPreference: readPreference }),
      $db: database,
    })
    // Without the length and the end of the document, the fields can be copied into other documents.
    this.#rest = rest.subarray(4, -1)
    const own = { ...(session === null ? {} : { lsid: session.id }), $db: database }
    this.#session = library.BSON.serialize(own).subarray(4, -1)
  }

  /** Wire.exchange() fills in the frame of the message. */
  message({ collection, form, batchSize, maxTimeMS }: Command): Buffer {
    const out = this.#bytes
    out.begin(FRAME)
    const whole = out.open()
    if (isFind(form)) {
      out.field('find', collection)
      for (const [name, value] of fieldsOf(form)) out.field(name, value)
      out.field('batchSize', batchSize)
    } else {
      out.field('aggregate', collection)
      out.field('pipeline', form)
      out.field('cursor', { batchSize })
    }
    out.field('maxTimeMS', maxTimeMS)
    out.raw(this.#rest)
    out.close(whole)
    return out.bytes()
  }

  closing(collection: string, cursor: bigint): Buffer {
    const out = this.#bytes
    out.begin(FRAME)
    const whole = out.open()
    out.field('killCursors', collection)
    out.field('cursors', [new Scalar({ kind: '$numberLong', value: cursor })])
    out.raw(this.#session)
    out.close(whole)
    return out.bytes()
  }
}

function isFind(form: Command['form']): form is Find {
  return 'projection' in form
}

/** Returns the fields of a find command that come from the query. */
export function fieldsOf({ filter, sort, skip, limit, projection }: Find): readonly (readonly [string, Bson])[] {
  const fields: [string, Bson][] = [['filter', filter]]
  if (sort !== null) fields.push(['sort', sort])
  if (skip !== null) fields.push(['skip', skip])
  fields.push(['limit', limit], ['projection', projection])
  return fields
}
