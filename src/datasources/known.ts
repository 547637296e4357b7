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

/** What is known, as JSON already written. */
export interface Known {
  /** When the newest of what is told was captured; null where nothing is. */
  readonly capturedAt: string | null
  /** By column of a table of the description; nothing of a column of which nothing is known. */
  statsOf(table: Pick<CatalogTable, 'schema' | 'table'>): ReadonlyMap<string, string>
  /** Characters, all in all. */
  readonly weight: number
}

/** Of the columns of `exposed` alone, whatever the store holds. */
export async function knownOf(db: Kysely<Tables>, id: DatasourceId, exposed: Catalog | null): Promise<Known> {
  const stored = exposed === null ? new Map<string, never>() : await profilesOf(db, id)
  const tables = exposed?.tables ?? []
  const likely = exposed === null ? new Map<string, never>() : likelyKeys(exposed, stored)
  const all = new Map<string, ReadonlyMap<string, string>>()
  let [newest, weight]: [string | null, number] = [null, 0]
  for (const table of tables) {
    const key = tableKey(table.schema, table.table)
    const profile = stored.get(key)
    if (profile !== undefined && (newest === null || profile.capturedAt > newest)) newest = profile.capturedAt
    const kept = new Map(profile?.columns.map((column) => [column.name, column]))
    const texts = new Map<string, string>()
    for (const column of table.columns) {
      const found = kept.get(column.name)
      const stats =
        profile === undefined || found?.type !== column.type
          ? ownOf(column)
          : statsOf(found, column, profile.capturedAt, likely.get(key)?.get(column.name))
      if (stats === null) continue
      const text = JSON.stringify(stats)
      texts.set(column.name, text)
      weight += text.length
    }
    all.set(key, texts)
  }
  return {
    capturedAt: newest,
    statsOf: ({ schema, table }) => all.get(tableKey(schema, table)) ?? NOTHING,
    weight,
  }
}

const NOTHING: ReadonlyMap<string, string> = new Map()

function statsOf(kept: KeptColumn, column: CatalogColumn, capturedAt: string, key: LikelyKey | undefined): Stats {
  const { nullFrac, distinctCount, range } = kept
  // Keys are no categories: which rows are pointed to most tells nobody how to ask.
  const isKey = column.primaryKey || column.references !== null || key !== undefined
  const values = isKey ? null : kept.values
  const keys = key === undefined ? [] : [`looks like a key of ${key.schema}.${key.table} (${key.column})`]
  const own = column.signals ?? []
  return {
    nullFrac,
    distinctCount,
    values,
    range,
    signals: [...own, ...kept.signals, ...shownSignals(kept, capturedAt), ...keys],
  }
}

/** What introspection noticed, where no profile tells more. */
function ownOf({ signals = [] }: CatalogColumn): Stats | null {
  return signals.length === 0 ? null : { nullFrac: null, distinctCount: null, values: null, range: null, signals }
}
