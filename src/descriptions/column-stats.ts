// Adds statistics to the columns of a description. After a change, only the changed profiles are read again.
import type { Kysely } from 'kysely'
import type { Catalog, CatalogColumn, CatalogTable, Driver, Scalar } from '../drivers/driver.ts'
import { tableKey } from '../drivers/table-key.ts'
import { BoundedMap } from '../bounded-map.ts'
import type { DatasourceId } from '../ids.ts'
import { likelyKeys, type LikelyKey } from '../profiles/likely-foreign-keys.ts'
import { shownSignals } from '../profiles/column-signals.ts'
import { profilesOf, stampsOf, type KeptColumn, type KeptProfile } from '../profiles/stored-profiles.ts'
import type { Tables } from '../store/tables.ts'
import { inSlices } from '../event-loop-slices.ts'

export interface Known {
  readonly capturedAt: string | null
  /** Returns a function that returns the `stats` of a column (docs/contract.md), or null. */
  statsOf(table: CatalogTable): (column: CatalogColumn) => Stats | null
}

/** The `stats` of a column (docs/contract.md). JSON omits undefined fields. */
interface Stats {
  readonly nullFrac?: number | undefined
  readonly distinctCount?: number | undefined
  readonly values?: readonly { readonly value: Scalar; readonly share?: number }[] | undefined
  readonly range?: KeptColumn['range'] | undefined
  readonly keys?: KeptColumn['keys'] | undefined
  readonly signals: readonly string[]
}

interface SeenColumn extends Pick<KeptColumn, 'name' | 'type' | 'unique' | 'range' | 'personal' | 'look'> {
  readonly stats: Stats
}

export interface SeenTable {
  readonly stamp: string
  readonly capturedAt: string
  readonly rowsSampled: number
  readonly columns: readonly SeenColumn[]
  /** In bytes. */
  readonly weight: number
}

export type SeenTables = ReadonlyMap<string, SeenTable>

/** A table's profile is reused while its stamp (stampsOf()) is unchanged. */
export type Seen = BoundedMap<DatasourceId, SeenTables>

const DATASOURCES_MAX = 500
const WEIGHT_MAX = 32 * 1024 * 1024
/** The weight of a column in bytes, without its texts and statistics. */
const COLUMN_WEIGHT = 120
const TABLES = 50

export function openColumnStats(): Seen {
  return new BoundedMap(DATASOURCES_MAX, WEIGHT_MAX)
}

export async function columnStatsOf(
  deps: { readonly db: Kysely<Tables>; readonly seen: Seen },
  id: DatasourceId,
  exposed: Catalog | null,
  typed: Driver['typed'],
): Promise<Known> {
  const tables = exposed?.tables ?? []
  const seen = tables.length === 0 ? new Map<string, never>() : await readSeen(deps, id)
  const likely = exposed === null || seen.size === 0 ? new Map<string, never>() : likelyKeys(exposed, seen)
  let newest: string | null = null
  for (const table of tables) {
    const capturedAt = seen.get(tableKey(table.schema, table.table))?.capturedAt
    if (capturedAt !== undefined && (newest === null || capturedAt > newest)) newest = capturedAt
  }
  return {
    capturedAt: newest,
    statsOf(table) {
      const key = tableKey(table.schema, table.table)
      const columns = seen.get(key)?.columns ?? []
      const keys = likely.get(key)
      let next = 0
      return (column) => {
        // A profile usually has its columns in the order of the table. Columns that were hidden or profiled later may
        // be elsewhere.
        const found =
          columns[next]?.name === column.name ? columns[next] : columns.find((it) => it.name === column.name)
        next++
        if (found?.type !== column.type) return ownOf(column)
        return statsOf(found, column, signalOf(keys?.get(column.name), typed))
      }
    },
  }
}

/** Reads only the profiles whose stamp has changed. */
export async function readSeen(
  { db, seen }: { readonly db: Kysely<Tables>; readonly seen: Seen },
  id: DatasourceId,
): Promise<SeenTables> {
  const stamps = await stampsOf(db, id)
  const before = seen.get(id)
  const now = new Map<string, SeenTable>()
  const missing = new Map<string, string>()
  for (const [key, { table, stamp }] of stamps) {
    const known = before?.get(key)
    if (known?.stamp === stamp) now.set(key, known)
    else missing.set(key, table)
  }
  const names = [...new Set(missing.values())]
  const turn = inSlices()
  for (let n = 0; n < names.length; n += TABLES) {
    for (const [key, profile] of await profilesOf(db, id, names.slice(n, n + TABLES))) {
      const stamp = missing.has(key) ? stamps.get(key)?.stamp : undefined
      if (stamp !== undefined) now.set(key, seenTable(profile, stamp))
      await turn()
    }
  }
  seen.set(id, now, weightOf(now))
  return now
}

function seenTable({ capturedAt, rowsSampled, columns }: KeptProfile, stamp: string): SeenTable {
  const seen = columns.map((column) => seenColumn(column, capturedAt))
  const weight = seen.reduce((sum, { name, stats }) => sum + name.length + JSON.stringify(stats).length, 0)
  return { stamp, capturedAt, rowsSampled, columns: seen, weight: weight * 2 + COLUMN_WEIGHT * seen.length }
}

function seenColumn(kept: KeptColumn, capturedAt: string): SeenColumn {
  const { name, type, unique, range, personal, look } = kept
  const stats = {
    nullFrac: kept.nullFrac ?? undefined,
    distinctCount: kept.distinctCount ?? undefined,
    values: kept.values ?? undefined,
    range: range ?? undefined,
    keys: kept.keys,
    signals: [...kept.signals, ...shownSignals(kept, capturedAt)],
  }
  return { name, type, unique, range, personal, look, stats }
}

function weightOf(tables: SeenTables): number {
  let sum = 0
  for (const { weight } of tables.values()) sum += weight
  return sum
}

function signalOf(key: LikelyKey | undefined, typed: Driver['typed']): string | undefined {
  if (key === undefined) return undefined
  return `looks like a key of ${typed([key.schema, key.table])} (${typed([key.column])})`
}

function statsOf(seen: SeenColumn, column: CatalogColumn, key: string | undefined): Stats {
  const { stats } = seen
  // The values of a key do not help to write a query.
  const isKey = column.primaryKey || column.references !== null || key !== undefined
  if (!isKey && column.signals === undefined && column.labels === undefined) return stats
  const shared = isKey ? undefined : stats.values
  const values = seen.personal ? shared : withLabels(shared, column.labels)
  const signals = [...(column.signals ?? []), ...stats.signals, ...(key === undefined ? [] : [key])]
  return { ...stats, values, signals }
}

/** For a column without a profile of its current type: returns the statistics that introspection found. */
function ownOf({ signals = [], labels = [] }: CatalogColumn): Stats | null {
  if (signals.length === 0 && labels.length === 0) return null
  return { values: withLabels(undefined, labels), signals }
}

/** Adds the labels (such as the values of an enum) that the profile lacks, without a share. */
function withLabels(values: Stats['values'], labels: readonly Scalar[] = []): Stats['values'] {
  if (labels.length === 0) return values
  const known = new Set(values?.map(({ value }) => value))
  const rest = labels.filter((label) => !known.has(label)).map((value) => ({ value }))
  return [...(values ?? []), ...rest]
}
