import assert from 'node:assert/strict'
import { test } from 'node:test'
import { olderStore } from '../../../test/support/older-store.ts'
import { DIALECTS, storeSource } from '../../../test/support/stores.ts'
import { newId, type AccountId, type DatasourceId, type TeamId } from '../../ids.ts'
import { openStore } from '../open.ts'

const AT = '2026-01-01T00:00:00.000Z'

for (const dialect of DIALECTS) {
  test(`on ${dialect}, the upgrade that adds drift stores the current catalog with the newest exposure`, async () => {
    await using source = await storeSource(dialect)
    const config = await source.nothing()
    const [teamId, id, never] = [newId<TeamId>(), newId<DatasourceId>(), newId<DatasourceId>()]
    const old = await olderStore(config, '0005')
    const team = { id: teamId, name: 'T', slug: 't', settings: '{}', created_at: AT }
    await old.insertInto('teams').values(team).execute()
    const row = {
      team_id: teamId,
      name: 'shop',
      type: 'POSTGRES',
      status: 'CONNECTED',
      connection_mode: 'DIRECT',
      host: 'h',
      port: 1,
      database: 'd',
      username: 'u',
      ssl_mode: 'disable',
      config: '{}',
      access_mode: 'ROLE_BASED',
      min_role: 'MEMBER',
      created_at: AT,
      updated_at: AT,
      last_tested_at: null,
      last_error: null,
      connection_version: 1,
    } as const
    await old
      .insertInto('datasources')
      .values([
        { ...row, id, catalog_version: 7, exposure_version: 2 },
        { ...row, id: never, catalog_version: 0, exposure_version: 1 },
      ])
      .execute()
    const exposure = { tables: '[]', author_id: newId<AccountId>(), created_at: AT }
    for (const [datasource_id, version] of [
      [id, 1],
      [id, 2],
      [never, 1],
    ] as const) {
      await old
        .insertInto('exposures')
        .values({ ...exposure, datasource_id, version })
        .execute()
    }
    await old.destroy()

    await using store = await openStore(config)
    const exposures = await store.db
      .selectFrom('exposures')
      .select(['datasource_id', 'version', 'catalog_version'])
      .orderBy('version')
      .execute()
    const of = (which: DatasourceId) =>
      exposures.filter((it) => it.datasource_id === which).map((it) => it.catalog_version)
    assert.deepEqual([of(id), of(never)], [[null, 7], [null]])
    const hours = await store.db.selectFrom('datasources').select('reintrospect_hours').execute()
    assert.deepEqual(
      hours.map((it) => it.reintrospect_hours),
      [24, 24],
    )
  })
}
