// “Address” means a network address in this file.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { sql } from 'kysely'
import { largestTurn } from '../../test/support/largest-turn.ts'
import { ROWS_A_PORTION } from '../store/delete-in-portions.ts'
import { DIALECTS, storeSource, type StoreSource } from '../../test/support/stores.ts'
import { secretsFrom } from '../secrets.ts'
import { until } from '../../test/support/until.ts'
import { openStore, type Store } from '../store/open.ts'
import { attempts } from '../auth/attempt-counter.ts'
import { knownDevices } from './known-browser-cookie.ts'
import { networkOf } from '../auth/client-network.ts'
import { openThrottle } from './sign-in-limits.ts'

const EMAIL = 'ada@example.test'
const account = { email: EMAIL, password: 'the current hash' }
const passwordOf = () => Promise.resolve(account.password)
const devices = knownDevices(secretsFrom(new Uint8Array(32)), false, passwordOf)

const request = (address: string, cookie?: string) =>
  new Request('http://127.0.0.1:3000/auth/sign-in/email', {
    method: 'POST',
    headers: { 'x-vitrine-client': address, ...(cookie === undefined ? {} : { cookie }) },
  })

interface Tried {
  readonly told: string
  readonly settle: () => Promise<void>
}

/** Opens the limits twice, as two processes that share a store would. */
async function opened(source: StoreSource) {
  await using stack = new AsyncDisposableStack()
  const config = await source.config()
  const store = stack.use(await openStore(config))
  const other = config.databaseUrl === null ? store : stack.use(await openStore(config))
  const clock = { at: 0 }
  const now = () => clock.at
  const doors = [store, other].map((each) => openThrottle(attempts(each, now), devices, 'vitrine.session_token'))
  const through =
    (door: number) =>
    async (address: string, cookie?: string, email = EMAIL): Promise<Tried> => {
      try {
        const asked = { name: 'POST /auth/sign-in/email', request: request(address, cookie), email, mailIsOn: false }
        return { told: 'tried', settle: (await doors[door]?.(asked))?.settle ?? assert.fail() }
      } catch (error) {
        const told = error instanceof Error && 'code' in error ? String(error.code) : String(error)
        return { told, settle: () => Promise.resolve() }
      }
    }
  const held = stack.move()
  return {
    clock,
    store,
    tries: attempts(store, now),
    signIn: through(0),
    elsewhere: through(1),
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}

/** Stores counters of one attempt each, with a late end. */
async function flood(store: Store, kind: string, length: number): Promise<void> {
  const all = Array.from({ length }, (_, n) => {
    return { key: `attempt:${kind}:${String(n).padStart(64, '0')}`, points: 1, expire: 1_000_000 }
  })
  for (let from = 0; from < length; from += 1_000) {
    const part = all.slice(from, from + 1_000)
    await store.write((tx) => tx.insertInto('counters').values(part).execute())
  }
}

async function countersIn(store: Store): Promise<number> {
  const count = store.db.selectFrom('counters').select((eb) => eb.fn.countAll<number>().as('n'))
  return Number((await count.executeTakeFirstOrThrow()).n)
}

for (const dialect of DIALECTS) {
  describe(`guesses at one account on ${dialect}`, () => {
    let source: StoreSource
    before(async () => {
      source = await storeSource(dialect)
    })
    after(() => source[Symbol.asyncDispose]())

    test('guesses of one password are limited to a hundred in total, but a browser that has signed in before has its own limit', async () => {
      await using doors = await opened(source)
      const { signIn, elsewhere, clock } = doors
      const cookie = devices.cookie(request('192.0.2.1'), account).split(';', 1)[0]
      for (let i = 0; i < 99; i++) await (i % 2 === 0 ? signIn : elsewhere)(`10.0.${i}.1`)
      const told = [await signIn('10.0.99.1'), await elsewhere('10.0.100.1')].map((each) => each.told)
      assert.deepEqual(told, ['tried', 'RATE_LIMITED'])
      assert.equal((await signIn('192.0.2.1', cookie)).told, 'tried')
      for (let i = 1; i < 10; i++) await signIn('192.0.2.1', cookie)
      assert.equal(
        (await elsewhere('192.0.2.2', cookie)).told,
        'RATE_LIMITED',
        'a stolen cookie allows unlimited guesses',
      )
      clock.at += 300_000
      await (await signIn('192.0.2.1', cookie)).settle()
      const stranger = await signIn('10.0.0.1')
      assert.equal(stranger.told, 'RATE_LIMITED', 'a known device reset the limit of strangers')
    })

    test('of eighty concurrent guesses in two processes, only ten are checked', async () => {
      await using doors = await opened(source)
      const all = await Promise.all(
        Array.from({ length: 80 }, (_, i) => (i % 2 === 0 ? doors.signIn : doors.elsewhere)('192.0.2.1')),
      )
      assert.equal(all.filter(({ told }) => told === 'tried').length, 10)
      assert.ok(all.every(({ told }) => told === 'tried' || told === 'RATE_LIMITED'))
      // The refused attempts of one address do not count against other addresses.
      assert.equal((await doors.signIn('192.0.2.2')).told, 'tried')
      doors.clock.at += 300_000
      assert.equal((await doors.elsewhere('192.0.2.1')).told, 'tried')
    })

    test('a browser is not a known device with a forged cookie, or a cookie of another account or an earlier password', async () => {
      await using doors = await opened(source)
      const { signIn } = doors
      for (let i = 0; i < 100; i++) await signIn(`10.0.${i}.1`)
      const [name = '', value = ''] = (devices.cookie(request('192.0.2.1'), account).split(';', 1)[0] ?? '').split('=')
      const of = (changed: object) => devices.cookie(request('192.0.2.1'), { ...account, ...changed }).split(';', 1)[0]
      const others = of({ email: 'eve@example.test' })
      const [old, none] = [of({ password: 'an earlier hash' }), of({ password: null })]
      const foreign = knownDevices(secretsFrom(new Uint8Array(32).fill(1)), false, passwordOf)
        .cookie(request('192.0.2.1'), account)
        .split(';', 1)[0]
      const flipped = `${name}=${value.startsWith('A') ? 'B' : 'A'}${value.slice(1)}`
      for (const cookie of [others, old, none, foreign, flipped, `${name}=`, `${name}=x.y`]) {
        assert.equal((await signIn('192.0.2.1', cookie)).told, 'RATE_LIMITED', cookie)
      }
    })

    test('a correct password resets the limit of its network address', async () => {
      await using doors = await opened(source)
      const { signIn, elsewhere } = doors
      for (let i = 0; i < 9; i++) await signIn('192.0.2.1')
      await (await elsewhere('192.0.2.1')).settle()
      for (let i = 0; i < 10; i++) assert.equal((await signIn('192.0.2.1')).told, 'tried')
      assert.equal((await signIn('192.0.2.1')).told, 'RATE_LIMITED')
    })

    test('a flood of refused attempts causes no writes, and attempts are accepted again after the window', async () => {
      await using doors = await opened(source)
      const { signIn, elsewhere, store, clock } = doors
      for (let i = 0; i < 11; i++) await signIn('192.0.2.1')
      const kept = () => store.db.selectFrom('counters').selectAll().orderBy('key').execute()
      const before = await kept()
      for (let i = 0; i < 50; i++) assert.equal((await signIn('192.0.2.1')).told, 'RATE_LIMITED')
      assert.deepEqual(await kept(), before)
      // A reset by another process is visible within a second.
      await store.append((tx) => tx.deleteFrom('counters').execute())
      clock.at += 1_000
      assert.equal((await signIn('192.0.2.1')).told, 'tried')
      for (let i = 0; i < 10; i++) await elsewhere('192.0.2.1')
      clock.at += 300_000
      assert.equal((await elsewhere('192.0.2.1')).told, 'tried')
    })

    test('if the clock was years ahead and is set right, nobody is locked out', async () => {
      await using doors = await opened(source)
      const { signIn, elsewhere, clock } = doors
      clock.at = Date.UTC(2040, 0)
      for (let i = 0; i < 11; i++) await signIn('192.0.2.1')
      assert.equal((await elsewhere('192.0.2.1')).told, 'RATE_LIMITED')
      clock.at = Date.UTC(2026, 0)
      for (let i = 0; i < 10; i++) assert.equal((await signIn('192.0.2.1')).told, 'tried')
      assert.equal((await elsewhere('192.0.2.1')).told, 'RATE_LIMITED')
    })

    test('floods of counters do not delete a limit that is used up', async () => {
      await using doors = await opened(source)
      const { signIn, store, clock } = doors
      for (let i = 0; i < 10; i++) await signIn('192.0.2.1')
      assert.equal((await signIn('192.0.2.1')).told, 'RATE_LIMITED')
      for (const kind of ['pair', 'oauth registration a day']) await flood(store, kind, 20_010)
      clock.at += 60_001
      await signIn('192.0.2.1')
      // The service does not wait for the deletion.
      await until('the deletion', async () => (await countersIn(store)) < 2 * 20_010)
      // A refusal is cached for a second.
      clock.at += 1_000
      assert.equal((await signIn('192.0.2.1')).told, 'RATE_LIMITED')
    })

    test('counters are stored under a hash, are deleted after their window, and are limited in number', async () => {
      await using doors = await opened(source)
      const { signIn, store, clock, tries } = doors
      await signIn('192.0.2.1')
      const kept = () => store.db.selectFrom('counters').selectAll().execute()
      assert.equal((await kept()).length, 3)
      assert.ok(!JSON.stringify(await kept()).includes('example'))
      await flood(store, 'x', 20_010)
      clock.at += 60_001
      await tries.spend([{ key: 'x: y', limit: 1, windowMs: 1_000 }])
      // The service does not wait for the deletion. The counter of `x: y` may be left too.
      await until('the deletion of the excess', async () => (await countersIn(store)) <= 20_001)
      clock.at += 4_000_000
      await tries.spend([{ key: 'x: y', limit: 1, windowMs: 1_000 }])
      await until('the deletion of expired windows', async () => (await countersIn(store)) === 1)
    })

    test('expired counters, and too many counters of one kind, are deleted in portions', async () => {
      await using doors = await opened(source)
      const { store, clock, tries } = doors
      await flood(store, 'x', 24_000)
      const count = () => countersIn(store)
      for (const [laterMs, left] of [
        [60_001, 20_001],
        [4_000_000, 1],
      ] as const) {
        // prettier-ignore
        clock.at += laterMs
        const most = await largestTurn(count, async () => {
          await tries.spend([{ key: 'x: y', limit: 1, windowMs: 1_000 }])
          await until('the deletion', async () => (await count()) <= left)
        })
        if (dialect === 'sqlite') assert.ok(most <= 2 * ROWS_A_PORTION, `${most} rows in one turn`)
      }
      if (dialect !== 'sqlite') return
      const { rows } = await sql<{ detail: string }>`explain query plan select key from counters
        where substr(key, 1, length(key) - 64) = 'attempt:x:' order by points desc, expire desc limit 1 offset 20000
      `.execute(store.db)
      assert.match(rows[0]?.detail ?? '', /USING INDEX counters_of_kind/)
    })
  })
}

test('the addresses of one IPv6 customer count as one, in any notation', () => {
  for (const [address, network] of [
    ['192.0.2.1', '192.0.2.1'],
    ['192.0.2.1:40000', '192.0.2.1'],
    ['[2001:db8:1:2::1]:40000', '2001:db8:1:2'],
    ['[2001:db8:1:2::1]', '2001:db8:1:2'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['2001:0DB8:0001:0002::1', '2001:db8:1:2'],
    ['2001:db8::1', '2001:db8:0:0'],
    ['fe80::1%eth0', 'fe80:0:0:0'],
    ['::1', '0:0:0:0'],
    ['::', '0:0:0:0'],
    ['', ''],
  ] as const) {
    assert.equal(networkOf(address), network, address)
  }
})
