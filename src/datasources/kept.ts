// Descriptions as the store keeps them: packed, each with what it was written of. One of older versions, or one that is
// not what its tag stands for, is none. What the versions of the moment do not vouch for is never kept.
import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { deflateRaw, inflateRaw } from 'node:zlib'
import type { DatasourceId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import type { DatasourceRow } from './rows.ts'
import type { Part } from './written.ts'

/** JSON in UTF-8, and the tag that stands for it. */
export interface Kept {
  readonly json: Buffer
  readonly etag: string
}

/** A larger one is written anew after a restart. */
const BYTES_MAX = 64 * 1024 * 1024
const PACKED_MAX = 8 * 1024 * 1024
/** The quickest: of a text that repeats itself so often, the best takes four times as long for little. */
const LEVEL = 1
/** Raise it with whatever is written otherwise: what another version of the service kept is then written anew. */
const WRITING = 2

const [deflate, inflate] = [promisify(deflateRaw), promisify(inflateRaw)]

/** Everything that changes and that a description is written of. */
export function versionsOf(
  row: Pick<DatasourceRow, 'catalog_version' | 'exposure_version' | 'profile_version' | 'published_version' | 'name'>,
): string {
  const { catalog_version, exposure_version, profile_version, published_version, name } = row
  return JSON.stringify([WRITING, catalog_version, exposure_version, profile_version, published_version, name])
}

/** Of the same bytes the same, whoever wrote them. */
export function etagOf(part: Part, json: Buffer): string {
  return `"${part}-${createHash('sha256').update(json).digest('base64url').slice(0, 27)}"`
}

/** Null where none of these versions is kept, or it is damaged. */
export async function readKept(
  db: Store['db'],
  at: { readonly id: DatasourceId; readonly part: Part; readonly versions: string },
): Promise<Kept | null> {
  const row = await db
    .selectFrom('descriptions')
    .select(['etag', 'bytes', 'packed'])
    .where('datasource_id', '=', at.id)
    .where('part', '=', at.part)
    .where('versions', '=', at.versions)
    .executeTakeFirst()
  if (row === undefined || row.bytes > BYTES_MAX) return null
  const json = await unpacked(row)
  return json !== null && etagOf(at.part, json) === row.etag ? { json, etag: row.etag } : null
}

async function unpacked({ bytes, packed }: { readonly bytes: number; readonly packed: Uint8Array }) {
  try {
    // In one piece: piece by piece takes ten times as long.
    const json = await inflate(packed, { chunkSize: bytes + 64, maxOutputLength: bytes + 64 })
    return json.length === bytes ? json : null
  } catch {
    return null
  }
}

/** Keeps it in place of the one before; not where the datasource is of other versions by now. */
export async function keep(
  store: Pick<Store, 'append'>,
  at: { readonly id: DatasourceId; readonly part: Part; readonly versions: string },
  { json, etag }: Kept,
): Promise<void> {
  if (json.length > BYTES_MAX) return
  const packed = await deflate(json, { level: LEVEL })
  if (packed.length > PACKED_MAX) return
  const set = { versions: at.versions, etag, bytes: json.length, packed }
  // Serializable: a change of the versions at the same time is before it, and then this is not kept, or removes it.
  await store.append(async (tx) => {
    const row = await tx
      .selectFrom('datasources')
      .select(['catalog_version', 'exposure_version', 'profile_version', 'published_version', 'name'])
      .where('id', '=', at.id)
      .executeTakeFirst()
    if (row === undefined || versionsOf(row) !== at.versions) return
    await tx
      .insertInto('descriptions')
      .values({ datasource_id: at.id, part: at.part, ...set })
      .onConflict((oc) => oc.columns(['datasource_id', 'part']).doUpdateSet(set))
      .execute()
  })
}
