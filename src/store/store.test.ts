import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { sql } from 'kysely'
import { newId, type AccountId, type TeamId } from '../ids.ts'
import { migrate, MIGRATIONS } from './migrate.ts'
import { openStore, type Store } from './open.ts'
import { DIALECTS, storeSource, type StoreSource } from '../../test/support/stores.ts'
import { until } from '../../test/support/until.ts'

const team = (slug: string) => ({
  id: newId<TeamId>(),
  name: slug,
  slug,
  settings: '{}',
  created_at: '2026-01-01T00:00:00.000Z',
})
const add = (store: Store, slug: string) => store.write((tx) => tx.insertInto('teams').values(team(slug)).execute())
const slugs = (store: Store) =>
  store.db
    .selectFrom('teams')
    .select('slug')
    .orderBy('slug')
    .execute()
    .then((rows) => rows.map((row) => row.slug))

for (const dialect of DIALECTS) {
  describe(`the store on ${dialect}`, () => {
    let source: StoreSource
    before(async () => {
      source = await storeSource(dialect)
    })
    after(() => source[Symbol.asyncDispose]())

    test('a store has the same data when it is opened again, and runs no migration twice', async () => {
      const config = await source.nothing()
      {
        await using store = await openStore(config)
        await add(store, 'kept')
      }
      await using store = await openStore(config)
      assert.deepEqual(await slugs(store), ['kept'])
      assert.deepEqual(await migrate(store.db, store.dialect), [])
    })

    test('a store of a newer version is refused and not changed', async () => {
      const config = await source.nothing()
      {
        await using store = await openStore(config)
        await migrate(store.db, dialect, [...MIGRATIONS, { name: '9999-later', up: async () => undefined }])
      }
      await assert.rejects(openStore(config), /newer version.*9999-later/)
    })

    test('a failed migration changes nothing in the store', async () => {
      await using store = await openStore(await source.nothing())
      const broken = {
        name: '9999-broken',
        up: async (tx: Store['db']) => {
          await tx.schema.createTable('half').addColumn('id', 'text').execute()
          throw new Error('broken')
        },
      }
      await assert.rejects(migrate(store.db, dialect, [...MIGRATIONS, broken]), /^Error: broken$/)
      assert.ok(!(await store.db.introspection.getTables()).some((table) => table.name === 'half'))
      assert.deepEqual(await migrate(store.db, dialect), [])
    })

    test('a write that throws stores nothing', async () => {
      await using store = await openStore(await source.nothing())
      const work = store.write(async (tx) => {
        await tx.insertInto('teams').values(team('gone')).execute()
        throw new Error('no')
      })
      await assert.rejects(work, /no/)
      assert.deepEqual(await slugs(store), [])
    })

    test('concurrent writes are serialized, so ten increments add ten', async () => {
      await using store = await openStore(await source.nothing())
      await add(store, 'counter')
      const bump = () =>
        store.write(async (tx) => {
          const { name } = await tx.selectFrom('teams').select('name').executeTakeFirstOrThrow()
          await tx
            .updateTable('teams')
            .set({ name: String((Number(name) || 0) + 1) })
            .execute()
        })
      await Promise.all(Array.from({ length: 10 }, bump))
      assert.equal((await store.db.selectFrom('teams').select('name').executeTakeFirstOrThrow()).name, '10')
    })

    test('a second team with the same slug is refused, and deleting a team deletes its rows', async () => {
      await using store = await openStore(await source.nothing())
      await add(store, 'one')
      await assert.rejects(add(store, 'one'))
      await assert.rejects(
        store.write((tx) =>
          tx
            .insertInto('memberships')
            .values({ ...membership, team_id: newId(), account_id: newId() })
            .execute(),
        ),
      )
      const { id } = await store.db.selectFrom('teams').select('id').executeTakeFirstOrThrow()
      await store.write((tx) =>
        tx
          .insertInto('invitations')
          .values({ ...invitation, id: newId(), team_id: id })
          .execute(),
      )
      await store.write((tx) => tx.deleteFrom('teams').where('id', '=', id).execute())
      assert.deepEqual(await store.db.selectFrom('invitations').selectAll().execute(), [])
    })

    test('append() keeps cached values, and write() clears them', async () => {
      // On a slow machine, the value might expire during the test.
      await using store = await openStore(await source.nothing(), { maxAgeMs: Infinity })
      let loads = 0
      const read = () => store.recall('teams', async () => [++loads, await slugs(store)] as const)
      assert.deepEqual(await Promise.all([read(), read()]), [
        [1, []],
        [1, []],
      ])
      await add(store, 'new')
      assert.deepEqual(await read(), [2, ['new']])
      await store.append((tx) => tx.insertInto('teams').values(team('unseen')).execute())
      assert.deepEqual(await read(), [2, ['new']])
    })

    test('background writes finish before the store is closed', async () => {
      const config = await source.nothing()
      {
        await using store = await openStore(config)
        store.later((db) => db.insertInto('teams').values(team('late')).execute())
      }
      await using store = await openStore(config)
      assert.deepEqual(await slugs(store), ['late'])
    })

    test('a change that was answered survives kill -9', async () => {
      const config = await source.nothing()
      const script = fileURLToPath(new URL('../../test/support/killed-writer.ts', import.meta.url))
      const child = spawn(process.execPath, [script, JSON.stringify(config)], { stdio: ['ignore', 'pipe', 'inherit'] })
      let said = ''
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        said += text
        if (said.split('\n').length > 40) child.kill('SIGKILL')
      })
      await once(child, 'close')
      const answered = said.split('\n').slice(0, -1)
      assert.ok(answered.length >= 40)
      await using store = await openStore(config)
      const kept = new Set(await slugs(store))
      assert.deepEqual(
        answered.filter((slug) => !kept.has(slug)),
        [],
      )
    })
  })
}

const membership = { role: 'MEMBER', status: 'ACTIVE', created_at: '' } as const
const invitation = {
  email: 'a@example.test',
  role: 'MEMBER',
  token_hash: 'x',
  created_at: '',
  expires_at: '',
  used_at: null,
} as const

describe('two processes on one PostgreSQL', () => {
  let source: StoreSource
  before(async () => {
    source = await storeSource('postgres')
  })
  after(() => source[Symbol.asyncDispose]())

  test('two processes that start together migrate once, and one sees the changes of the other', async () => {
    const config = await source.nothing()
    const [one, other] = await Promise.all([openStore(config), openStore(config)])
    await using _one = one
    await using _other = other
    const seen = () => other.recall('slugs', () => slugs(other))
    assert.deepEqual(await seen(), [])
    await add(one, 'new')
    await until('the other process sees the change', async () => (await seen()).length > 0)
    assert.deepEqual(await seen(), ['new'])
  })

  test('forty concurrent changes succeed, although each reads rows that the others change', async () => {
    const config = await source.nothing()
    await using one = await openStore(config)
    await using other = await openStore(config)
    const rename = (store: Store, n: number) =>
      store.write(async (tx) => {
        const taken = await tx.selectFrom('teams').select('slug').execute()
        if (taken.some((row) => row.slug === `new-${n}`)) throw new Error('taken')
        await tx
          .updateTable('teams')
          .set({ slug: `new-${n}` })
          .where('slug', '=', `old-${n}`)
          .execute()
      })
    const numbers = Array.from({ length: 40 }, (_, n) => n)
    await one.write((tx) =>
      tx
        .insertInto('teams')
        .values(numbers.map((n) => team(`old-${n}`)))
        .execute(),
    )
    await Promise.all(numbers.map((n) => rename(n % 2 === 0 ? one : other, n)))
    assert.ok((await slugs(one)).every((slug) => slug.startsWith('new-')))
  })
})

describe('the data folder', () => {
  const dir = mkdtempSync(join(tmpdir(), 'vt-store-'))
  const config = { dataDir: join(dir, 'data'), databaseUrl: null }
  after(() => rmSync(dir, { recursive: true, force: true }))

  test('a second process cannot open the same data folder, and its error names the folder', async () => {
    await using _held = await openStore(config)
    await assert.rejects(openStore(config), (error: Error) => {
      assert.match(error.message, /in use by another Vitrine process/)
      assert.ok(error.message.includes(config.dataDir))
      return true
    })
    const script = fileURLToPath(new URL('../../test/support/killed-writer.ts', import.meta.url))
    const child = spawn(process.execPath, [script, JSON.stringify(config)], { stdio: ['ignore', 'ignore', 'pipe'] })
    let said = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text))
    const [code] = await once(child, 'close')
    assert.notEqual(code, 0)
    assert.match(said, /in use by another Vitrine process/)
  })

  test('every commit except that of append() waits for the disk, even if an append() fails', async () => {
    await using store = await openStore(config)
    const waits = async (db: Pick<Store['db'], 'getExecutor'>) =>
      (await sql<{ synchronous: number }>`PRAGMA synchronous`.execute(db)).rows.map((row) => row.synchronous)
    const [FULL, NORMAL] = [[2], [1]]
    assert.deepEqual(await waits(store.db), FULL)
    const fails = store.append(async (tx) => {
      assert.deepEqual(await waits(tx), NORMAL)
      throw new Error('rolled back')
    })
    // These transactions are requested while the other commit is in progress.
    const asked = Promise.all([store.write(waits), store.append(waits), waits(store.db)])
    await assert.rejects(fails, /rolled back/)
    assert.deepEqual(await asked, [FULL, NORMAL, FULL])
  })

  test('only the owner of the store file can read it', async () => {
    await using store = await openStore(config)
    await add(store, 'any')
    assert.equal(statSync(config.dataDir).mode & 0o777, 0o700)
    for (const file of ['vitrine.db', 'vitrine.db-wal']) {
      assert.equal(statSync(join(config.dataDir, file)).mode & 0o777, 0o600, file)
    }
  })

  test('the error about an unreachable database does not contain the password', async () => {
    const databaseUrl = 'postgres://someone:hunter2@127.0.0.1:1/none'
    await assert.rejects(openStore({ dataDir: config.dataDir, databaseUrl }), (error: Error) => {
      assert.match(error.message, /^DATABASE_URL: Nothing listens at 127\.0\.0\.1:1\./)
      assert.ok(!error.message.includes('hunter2'))
      return true
    })
  })
})

test('a store on PostgreSQL is open only when it listens for changes by other processes', async () => {
  await using source = await storeSource('postgres')
  await using store = await openStore(await source.nothing())
  const { rows } = await sql<{ readonly query: string }>`
    select query from pg_stat_activity where datname = current_database() and application_name = 'vitrine listener'
  `.execute(store.db)
  assert.deepEqual(rows, [{ query: 'LISTEN vitrine_changed' }])
})

test('deleting an account reads no table whole', async () => {
  await using source = await storeSource('sqlite')
  await using store = await openStore(await source.config())
  const unindexed = await sql<{ name: string }>`
    select child.name || '.' || key."from" as name
    from sqlite_schema as child, pragma_foreign_key_list(child.name) as key
    where child.type = 'table' and not exists (
      select 1 from pragma_index_list(child.name) as list, pragma_index_info(list.name) as part
      where part.seqno = 0 and part.name = key."from"
    )`.execute(store.db)
  assert.deepEqual(unindexed.rows, [])
  for (const statement of [
    sql`delete from verifications where value = 'x'`,
    sql`select id from jobs where kind in ('preview') and state = 'RUNNING' and input is not null`,
    sql`select id from accounts where "emailVerified" = 0 and "createdAt" < 'x' order by "createdAt" limit 100`,
  ]) {
    const { rows } = await sql<{ detail: string }>`explain query plan ${statement}`.execute(store.db)
    assert.match(rows.map(({ detail }) => detail).join('; '), /^SEARCH \w+ USING [^;]+$/)
  }
})

test('deleting an account deletes its keys', async () => {
  await using source = await storeSource('sqlite')
  await using store = await openStore(await source.nothing())
  const id = newId<AccountId>()
  const now = new Date().toISOString()
  await store.write((tx) =>
    tx
      .insertInto('accounts')
      .values({ id, name: '', email: 'a@example.test', emailVerified: 0, image: null, createdAt: now, updatedAt: now })
      .execute(),
  )
  await store.write((tx) =>
    tx
      .insertInto('api_keys')
      .values({
        id: newId(),
        account_id: id,
        name: '',
        hash: 'h',
        hint: '',
        scopes: '[]',
        team_ids: null,
        datasource_ids: null,
        created_at: now,
        last_used_at: null,
        expires_at: null,
        revoked_at: null,
        ended_team_ids: '[]',
      })
      .execute(),
  )
  await store.write((tx) => tx.deleteFrom('accounts').where('id', '=', id).execute())
  assert.deepEqual(await store.db.selectFrom('api_keys').selectAll().execute(), [])
})

describe('contention on a PostgreSQL store', () => {
  let source: StoreSource
  before(async () => {
    source = await storeSource('postgres')
  })
  after(() => source[Symbol.asyncDispose]())

  for (const code of ['40001', '40P01', '55P03']) {
    test(`a change that always fails with ${code} is answered OVERLOADED, and nothing is stored`, async () => {
      await using store = await openStore(await source.nothing())
      let tried = 0
      const change = store.write(async (tx) => {
        tried++
        await tx.insertInto('teams').values(team('never')).execute()
        await sql.raw(`DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '${code}'; END $$`).execute(tx)
      })
      await assert.rejects(change, { code: 'OVERLOADED', extra: { retryAfter: 2 } })
      assert.equal(tried, code === '55P03' ? 1 : 20)
      assert.deepEqual(await slugs(store), [])
    })
  }

  test('reads and changes that get no connection are answered OVERLOADED', async () => {
    const { databaseUrl, dataDir } = await source.nothing()
    assert.ok(databaseUrl)
    await using admin = await openStore({ databaseUrl, dataDir })
    await sql
      .raw(`CREATE ROLE few LOGIN PASSWORD 'few' CONNECTION LIMIT 2; GRANT ALL ON ALL TABLES IN SCHEMA public TO few`)
      .execute(admin.db)
    const url = new URL(databaseUrl)
    url.username = url.password = 'few'
    await using store = await openStore({ databaseUrl: url.href, dataDir }, { asIs: true })
    const asked = await Promise.allSettled(Array.from({ length: 10 }, () => slugs(store)))
    const refused = asked.filter((each) => each.status === 'rejected')
    assert.ok(refused.length > 0)
    for (const { reason } of refused) assert.equal(reason.code, 'OVERLOADED')
    await assert.doesNotReject(slugs(store))
  })
})

test('a change is announced to the other processes on a PostgreSQL store', async () => {
  await using source = await storeSource('postgres')
  const config = await source.nothing()
  // No entry expires, so only an announcement clears the cache.
  await using one = await openStore(config, { maxAgeMs: Infinity })
  await using other = await openStore(config, { maxAgeMs: Infinity })
  const seen = () => other.recall('marks', () => other.db.selectFrom('marks').select('name').execute())
  const note = (name: string) => one.write((tx) => tx.insertInto('marks').values({ name, value: '' }).execute())
  for (const name of ['first', 'second']) {
    await seen()
    await note(name)
    await until(`${name} is seen`, async () => (await seen()).some((mark) => mark.name === name))
  }
  // After changes by the sign-in library, forget() is called.
  await seen()
  await one.db.insertInto('marks').values({ name: 'third', value: '' }).execute()
  one.forget()
  await until('third is seen', async () => (await seen()).some((mark) => mark.name === 'third'))
})

test('a change that is never announced is seen when the cached value expires', async () => {
  await using source = await storeSource('postgres')
  const config = await source.nothing()
  await using one = await openStore(config)
  await using other = await openStore(config)
  const seen = () => other.recall('marks', () => other.db.selectFrom('marks').select('name').execute())
  const before = await seen()
  // Without write(), the change is not announced.
  await one.db.insertInto('marks').values({ name: 'silent', value: '' }).execute()
  await until('the change is seen', async () => (await seen()).length > before.length)
})
