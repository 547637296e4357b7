// Lists the tables of a dataset. Dated shards (events_20240101, events_20240102 …) become one table, as in BigQuery's
// own console.
import { z } from 'zod'
import type { ShardFamily, TableType } from '../captured-facts.ts'
import { unavailable } from '../session/failure.ts'
import type { Rest } from '../session/rest.ts'
import { readPages } from './list-pages.ts'

const PAGE_MAX = 1_000
/** The maximum number of ids in all datasets together. Each shard has its own id. */
const IDS_MAX = 200_000

interface Listed {
  readonly id: string
  readonly type: TableType
  readonly createdAt: number | null
}

export interface Found {
  readonly dataset: string
  /** For a family, for example `events_*`. */
  readonly table: string
  readonly family: ShardFamily | null
  /** 0 for a table that is no family. */
  readonly shards: number
  /** For a family, the newest shard, whose columns the wildcard has. */
  readonly newest: Listed
}

const Item = z.object({
  tableReference: z.object({ tableId: z.string().min(1).max(1024) }),
  type: z.string().optional().catch(undefined),
  creationTime: z
    .string()
    .regex(/^\d{1,15}$/)
    .transform(Number)
    .optional()
    .catch(undefined),
})

const TYPES: readonly TableType[] = ['TABLE', 'VIEW', 'EXTERNAL', 'MATERIALIZED_VIEW', 'SNAPSHOT']

/** A table whose name does not match cannot be written in a query, so it is left out. */
const NAME = /^[\p{L}\p{M}\p{N}\p{Pc}\p{Pd}\p{Zs}]+$/u
const DATED = /_(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])$/
const SHARD_DIGITS = 8

export interface FoundTables {
  /** The ids of everything in the dataset. */
  readonly ids: readonly string[]
  readonly tables: readonly Found[]
}

/** How many tables may still be listed in all datasets together. */
export interface Room {
  left: number
}

export function newRoom(): Room {
  return { left: IDS_MAX }
}

/** Throws AppError DATASOURCE_UNAVAILABLE if there are more tables than allowed. */
export async function findTables(
  rest: Rest,
  project: string,
  dataset: string,
  room: Room,
  signal: AbortSignal,
): Promise<FoundTables> {
  const path = ['projects', project, 'datasets', dataset, 'tables']
  // A set, because two pages may both contain a table that was created between them.
  const ids = new Set<string>()
  const listed: Listed[] = []
  for await (const each of readPages(rest, { path, key: 'tables', pageMax: PAGE_MAX }, signal)) {
    const item = Item.safeParse(each)
    if (!item.success) continue
    const { tableReference, type, creationTime } = item.data
    if (ids.has(tableReference.tableId)) continue
    ids.add(tableReference.tableId)
    if (--room.left < 0) {
      throw unavailable(
        `The datasets have more than ${IDS_MAX} tables: choose some of the datasets in config.datasets.`,
      )
    }
    const known = TYPES.find((each) => each === (type ?? 'TABLE'))
    if (known === undefined || !NAME.test(tableReference.tableId)) continue
    listed.push({ id: tableReference.tableId, type: known, createdAt: creationTime ?? null })
  }
  return { ids: [...ids], tables: groupShards(dataset, listed, [...ids]) }
}

/** Returns `events_` for `events_20240101`, and null if the name does not end in eight digits. */
function prefixOf(id: string): string | null {
  return /_\d{8}$/.test(id) ? id.slice(0, -SHARD_DIGITS) : null
}

/**
 * Groups shards into families. A single table whose name ends with a date is enough for a family. Every table whose
 * name is the same prefix and eight digits belongs to it, because a wildcard reads all these tables. A family takes the
 * place of its first shard in the list.
 */
function groupShards(dataset: string, listed: readonly Listed[], ids: readonly string[]): Found[] {
  const dated = listed.filter(({ type, id }) => type === 'TABLE' && DATED.test(id))
  const prefixes = new Set(dated.map(({ id }) => prefixOf(id)))
  const families = new Map<string, Listed[]>()
  const found = listed.map((each): Found | string => {
    const prefix = each.type === 'TABLE' ? prefixOf(each.id) : null
    if (prefix === null || !prefixes.has(prefix))
      return { dataset, table: each.id, family: null, shards: 0, newest: each }
    const family = families.get(prefix)
    if (family === undefined) families.set(prefix, [each])
    else family.push(each)
    return family === undefined ? prefix : ''
  })
  return found.flatMap((each) => {
    if (typeof each !== 'string') return [each]
    const shards = families.get(each)
    const newest = shards?.reduce((one, two) => (isNewer(two, one) ? two : one))
    if (shards === undefined || newest === undefined) return []
    const own = new Set(shards.map(({ id }) => id))
    const apart = ids.filter((id) => prefixOf(id) === each && !own.has(id))
    const family = { prefix: each, digits: SHARD_DIGITS, apart }
    return [{ dataset, table: `${each}*`, family, shards: shards.length, newest }]
  })
}

function isNewer(one: Listed, two: Listed): boolean {
  const [a, b] = [one.createdAt ?? 0, two.createdAt ?? 0]
  return a === b ? one.id > two.id : a > b
}
