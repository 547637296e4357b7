// Stores what a list of datasources shows about their catalogs, so that a list reads no catalog. The counts belong to a
// version of the catalog and of the exposure, and are stored in the transaction that saves such a version.
import type { Kysely } from 'kysely'
import type { Catalog } from '../drivers/driver.ts'
import type { DatasourceId } from '../ids.ts'
import type { Tables } from '../store/tables.ts'
import { driftOf } from './drift.ts'

/** The versions in a datasource's row. Version 0 means that there is no catalog or exposure yet. */
export interface Versions {
  readonly id: DatasourceId
  readonly catalog_version: number
  readonly exposure_version: number
}

export interface CatalogCounts {
  readonly capturedAt: string
  readonly tableCount: number
  readonly exposedTableCount: number
  /** How many tables and columns have changed since the save. Null if there was no save, or no catalog then. */
  readonly driftCount: number | null
}

/** `baseline` is the catalog for which the exposure was saved, or null. */
export async function countsOf(
  full: Catalog,
  exposedTableCount: number,
  baseline: Catalog | null,
): Promise<CatalogCounts> {
  const drift = baseline === null ? null : await driftOf(baseline, full)
  return {
    capturedAt: full.capturedAt,
    tableCount: full.tables.length,
    exposedTableCount,
    driftCount: drift === null ? null : drift.added.length + drift.removed.length + drift.retyped.length,
  }
}

export async function keepCounts(db: Kysely<Tables>, at: Versions, counts: CatalogCounts): Promise<void> {
  const row = {
    catalog_version: at.catalog_version,
    exposure_version: at.exposure_version,
    captured_at: counts.capturedAt,
    tables: counts.tableCount,
    exposed_tables: counts.exposedTableCount,
    drift: counts.driftCount,
  }
  await db
    .insertInto('catalog_counts')
    .values({ datasource_id: at.id, ...row })
    .onConflict((conflict) => conflict.column('datasource_id').doUpdateSet(row))
    .execute()
}

/** Leaves out datasources whose counts are missing or belong to other versions. */
export async function readCounts(
  db: Kysely<Tables>,
  places: readonly Versions[],
): Promise<ReadonlyMap<DatasourceId, CatalogCounts>> {
  if (places.length === 0) return new Map()
  const versions = new Map(places.map((at) => [at.id, at]))
  const rows = await db
    .selectFrom('catalog_counts')
    .selectAll()
    .where('datasource_id', 'in', [...versions.keys()])
    .execute()
  const current = rows.filter((row) => {
    const at = versions.get(row.datasource_id)
    return row.catalog_version === at?.catalog_version && row.exposure_version === at.exposure_version
  })
  return new Map(
    current.map((row) => [
      row.datasource_id,
      {
        capturedAt: row.captured_at,
        tableCount: row.tables,
        exposedTableCount: row.exposed_tables,
        driftCount: row.drift,
      },
    ]),
  )
}

/** Returns the datasources whose counts are missing or belong to other versions. */
export async function uncounted(db: Kysely<Tables>): Promise<readonly Versions[]> {
  return await db
    .selectFrom('datasources')
    .leftJoin('catalog_counts', (join) =>
      join
        .onRef('catalog_counts.datasource_id', '=', 'datasources.id')
        .onRef('catalog_counts.catalog_version', '=', 'datasources.catalog_version')
        .onRef('catalog_counts.exposure_version', '=', 'datasources.exposure_version'),
    )
    .select(['datasources.id', 'datasources.catalog_version', 'datasources.exposure_version'])
    .where('datasources.catalog_version', '>', 0)
    .where('catalog_counts.datasource_id', 'is', null)
    .execute()
}
