// Some tests need a team or a datasource in the store, whatever its fields are.
import type { Insertable } from 'kysely'
import { newId, type DatasourceId, type TeamId } from '../../src/ids.ts'
import type { Tables } from '../../src/store/tables.ts'

const AT = '2026-01-01T00:00:00.000Z'

export function teamRow(id: TeamId, more: Partial<Insertable<Tables['teams']>> = {}): Insertable<Tables['teams']> {
  return { id, name: 'Team', slug: id, settings: '{}', created_at: AT, ...more }
}

/** Makes a row of a datasource that was never connected. */
export function datasourceRow(
  teamId: TeamId,
  more: Partial<Insertable<Tables['datasources']>> = {},
): Insertable<Tables['datasources']> & { readonly id: DatasourceId } {
  return {
    id: newId<DatasourceId>(),
    team_id: teamId,
    name: 'shop',
    type: 'POSTGRES',
    status: 'PENDING',
    connection_mode: 'DIRECT',
    host: 'db.example.test',
    port: 5432,
    database: 'shop',
    username: 'reader',
    ssl_mode: 'verify-full',
    config: '{}',
    access_mode: 'ROLE_BASED',
    min_role: 'MEMBER',
    created_at: AT,
    updated_at: AT,
    last_tested_at: null,
    last_error: null,
    connection_version: 1,
    catalog_version: 0,
    exposure_version: 0,
    ...more,
  }
}
