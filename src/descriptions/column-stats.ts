// The column statistics of a description. Profiles that were read are cached per table, so that a change re-reads only
// the tables it touched.
import type { Kysely } from 'kysely'
import { z } from 'zod'
import type { Catalog, CatalogColumn, CatalogTable, Driver, Scalar } from '../drivers/driver.ts'
import { tableKey } from '../drivers/table-key.ts'
import { BoundedMap } from '../bounded-map.ts'
import type { DatasourceId } from '../ids.ts'
import { likelyKeys, type LikelyKey } from '../profiles/keys.ts'
import { shownSignals } from '../profiles/signals.ts'
import { profilesOf, stampsOf, type KeptColumn, type KeptProfile } from '../profiles/stored.ts'
import type { Tables } from '../store/tables.ts'
import { inSlices } from '../slices.ts'

/** The statistics of the exposed part. */
export interface Known {
  /** The time of the newest profile shown; null if there is none. */
  readonly capturedAt: string | null
  /** By column of an exposed table: the contract's stats as JSON, or null. */
  statsOf(table: CatalogTable): (column: CatalogColumn) => string
}

/** One column's profile as JSON, with the positions of the parts that depend on what else is exposed. */
interface SeenColumn extends Pick<KeptColumn, 'name' | 'type' | 'unique' | 'range' | 'personal' | 'look'> {
  readonly json: string
  readonly valuesAt: number
  readonly valuesEnd: number
  readonly signalsAt: number
}

export interface SeenTable {
  readonly stamp: string
  readonly capturedAt: string
  readonly rowsSampled: number
  readonly columns: readonly SeenColumn[]
}

/** By tableKey. */
export type SeenTables = ReadonlyMap<string, SeenTable>

/** The profiles read last, per datasource. Each table is reused while its stamp is unchanged. */
export type Seen = BoundedMap<DatasourceId, SeenTables>

const DATASOURCES_MAX = 500
const CHARS_MAX = 16 * 1024 * 1024
/** The overhead of a column besides its texts, in characters. */
const COLUMN_CHARS = 120
/** Tables read per query. */
const TABLES = 50

export function openColumnStats(): Seen {
  return new BoundedMap(DATASOURCES_MAX, CHARS_MAX)
}

/** Statistics of the columns in `exposed` only, whatever the store holds. */
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
        // Columns are usually in the same order, except those hidden or profiled since.
        const found =
          columns[next]?.name === column.name ? columns[next] : columns.find((it) => it.name === column.name)
        next++
        if (found?.type !== column.type) return ownOf(column)
        return statsOf(found, column, signalOf(keys?.get(column.name), typed))
      }
    },
  }
}

/** All stored profiles. Tables whose cached stamp is current are not read. */
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
  return { stamp, capturedAt, rowsSampled, columns: columns.map((column) => seenColumn(column, capturedAt)) }
}

function seenColumn(kept: KeptColumn, capturedAt: string): SeenColumn {
  const { name, type, unique, range, personal, look } = kept
  const head = `{${member('nullFrac', kept.nullFrac)}${member('distinctCount', kept.distinctCount)}`
  const values = member('values', kept.values)
  const rest = `${member('range', range)}${member('keys', kept.keys ?? null)}"signals":[`
  const signals = listed([...kept.signals, ...shownSignals(kept, capturedAt)])
  const valuesEnd = head.length + values.length
  const places = { valuesAt: head.length, valuesEnd, signalsAt: valuesEnd + rest.length }
  return { name, type, unique, range, personal, look, json: `${head}${values}${rest}${signals}]}`, ...places }
}

/** A member of a JSON object with a trailing comma; empty if there is no value. */
function member(name: string, value: unknown): string {
  return value === null ? '' : `"${name}":${JSON.stringify(value)},`
}

function weightOf(tables: SeenTables): number {
  let sum = 0
  for (const { columns } of tables.values()) {
    for (const { name, json } of columns) sum += name.length + json.length + COLUMN_CHARS
  }
  return sum
}

function signalOf(key: LikelyKey | undefined, typed: Driver['typed']): string | undefined {
  if (key === undefined) return undefined
  return `looks like a key of ${typed([key.schema, key.table])} (${typed([key.column])})`
}

function statsOf(seen: SeenColumn, column: CatalogColumn, key: string | undefined): string {
  const { json, valuesAt, valuesEnd, signalsAt } = seen
  // Keys are not categories: the most referenced rows do not help to write a query.
  const isKey = column.primaryKey || column.references !== null || key !== undefined
  if (!isKey && column.signals === undefined && column.labels === undefined) return json
  const shared = isKey ? '' : json.slice(valuesAt, valuesEnd)
  const values = column.labels === undefined || seen.personal ? shared : withLabels(shared, column.labels)
  const own = listed(column.signals ?? [])
  const keys = key === undefined ? '' : listed([key])
  const signals = [own, json.slice(signalsAt, -2), keys].filter((some) => some !== '').join(',')
  return `${json.slice(0, valuesAt)}${values}${json.slice(valuesEnd, signalsAt)}${signals}]}`
}

/** The findings of introspection, if no profile says more. */
function ownOf({ signals = [], labels = [] }: CatalogColumn): string {
  if (signals.length === 0 && labels.length === 0) return 'null'
  return `{${withLabels('', labels)}"signals":[${listed(signals)}]}`
}

const Shared = z.object({ values: z.array(z.object({ value: z.unknown(), share: z.number() })) })

/** The member `values`, followed by the labels that were never seen; these have no share. */
function withLabels(values: string, labels: readonly Scalar[]): string {
  if (labels.length === 0) return values
  const seen = values === '' ? [] : Shared.parse(JSON.parse(`{${values.slice(0, -1)}}`)).values
  const known = new Set(seen.map(({ value }) => value))
  const rest = labels.filter((label) => !known.has(label)).map((value) => ({ value }))
  return member('values', [...seen, ...rest])
}

/** The signals as elements of a JSON array. */
function listed(signals: readonly string[]): string {
  return signals.length === 0 ? '' : JSON.stringify(signals).slice(1, -1)
}
