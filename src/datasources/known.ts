// What is known of the values of a datasource's exposed columns, as its description tells it.
import type { Kysely } from 'kysely'
import type { Catalog, CatalogColumn, CatalogTable } from '../drivers/driver.ts'
import { tableKey } from '../drivers/table-key.ts'
import type { DatasourceId } from '../ids.ts'
import { likelyKeys, type LikelyKey } from '../profiles/keys.ts'
import { shownSignals } from '../profiles/signals.ts'
import { profilesOf, type KeptColumn } from '../profiles/stored.ts'
import type { Tables } from '../store/tables.ts'

/** The contract's column stats. */
type Stats = Pick<KeptColumn, 'nullFrac' | 'distinctCount' | 'values' | 'range' | 'signals'>

export interface Known {
  /** When the newest of what is told was captured; null where nothing is. */
  readonly capturedAt: string | null
  /** Of a table of the description: what is known of a column; null where that is nothing. */
  statsOf(table: CatalogTable): (column: CatalogColumn) => Stats | null
}

/** Of the columns of `exposed` alone, whatever the store holds. */
export async function knownOf(db: Kysely<Tables>, id: DatasourceId, exposed: Catalog | null): Promise<Known> {
  const stored = await profilesOf(db, id)
  if (exposed === null) return { capturedAt: null, statsOf: () => () => null }
  const likely = likelyKeys(exposed, stored)
  const all = new Map(
    exposed.tables.flatMap((table) => {
      const key = tableKey(table.schema, table.table)
      const profile = stored.get(key)
      if (profile === undefined) return []
      const kept = new Map(profile.columns.map((column) => [column.name, column]))
      const columns = table.columns.flatMap((column) => {
        const found = kept.get(column.name)
        if (found?.type !== column.type) return []
        return [[column.name, statsOf(found, column, profile.capturedAt, likely.get(key)?.get(column.name))] as const]
      })
      return [[key, { capturedAt: profile.capturedAt, columns: new Map(columns) }] as const]
    }),
  )
  const newest = [...all.values()].map(({ capturedAt }) => capturedAt).sort()
  return {
    capturedAt: newest.at(-1) ?? null,
    statsOf: (table) => {
      const columns = all.get(tableKey(table.schema, table.table))?.columns
      return (column) => withOwn(columns?.get(column.name), column)
    },
  }
}

function statsOf(kept: KeptColumn, column: CatalogColumn, capturedAt: string, key: LikelyKey | undefined): Stats {
  const { nullFrac, distinctCount, range } = kept
  // Keys are no categories: which rows are pointed to most tells nobody how to ask.
  const isKey = column.primaryKey || column.references !== null || key !== undefined
  const values = isKey ? null : kept.values
  const keys = key === undefined ? [] : [`looks like a key of ${key.schema}.${key.table} (${key.column})`]
  const signals = [...kept.signals, ...shownSignals({ ...kept, values }, capturedAt), ...keys]
  return { nullFrac, distinctCount, values, range, signals }
}

/** With what introspection noticed. */
function withOwn(stats: Stats | undefined, { signals = [] }: CatalogColumn): Stats | null {
  if (stats !== undefined) return signals.length === 0 ? stats : { ...stats, signals: [...signals, ...stats.signals] }
  return signals.length === 0 ? null : { nullFrac: null, distinctCount: null, values: null, range: null, signals }
}
