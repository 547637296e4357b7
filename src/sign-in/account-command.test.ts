import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startSmtp, tokenIn } from '../../test/support/mail.ts'
import { auth, codeOf, openRooms, PASSWORD } from '../../test/support/people.ts'
import { DIALECTS, storeSource } from '../../test/support/stores.ts'
import { totp } from '../../test/support/totp.ts'
import { requireKeyOf, rootKeysOf } from '../secrets.ts'
import { openStore } from '../store/open.ts'
import { runAccount } from './account-command.ts'
import { createKey } from '../auth/api-keys.ts'
import { authenticator } from '../auth/authenticate.ts'

const EMAIL = 'ada@example.test'
const SECRET = Buffer.alloc(32, 9).toString('base64')

async function run(args: readonly string[], env: Record<string, string> = {}) {
  const [out, err]: [string[], string[]] = [[], []]
  const code = await runAccount(args, env, {
    line: (text) => void out.push(text),
    aside: (text) => void err.push(text),
  })
  return { code, out: out.join('\n'), err: err.join('') }
}

test('wrong usage of `vitrine account` prints the usage', async () => {
  for (const args of [[], ['reset'], ['reset-second-factor'], ['reset-second-factor', EMAIL, 'more']]) {
    const wrong = await run(args)
    assert.deepEqual([wrong.code, wrong.out], [2, ''])
    assert.match(wrong.err, /^Usage: vitrine account reset-second-factor <e-mail>/)
  }
  for (const args of [['--help'], ['reset-second-factor', '-h']]) {
    const help = await run(args)
    assert.deepEqual([help.code, help.err], [0, ''])
    assert.match(help.out, /Exit code: 0 done/)
  }
})

for (const dialect of DIALECTS) {
  test(`reset-second-factor on ${dialect} ends sessions, informs the owner and keeps the keys`, async () => {
    await using source = await storeSource(dialect)
    await using smtp = await startSmtp()
    await using stack = new AsyncDisposableStack()
    const rooms = stack.use(await openRooms(source, { SMTP_URL: smtp.url }))
    await requireKeyOf(rooms.store, await rootKeysOf({ dataDir: '', secretKey: Buffer.alloc(32, 9) }, true))
    const ask = (path: string, body: object, cookie = '') => auth(rooms, `POST ${path}`, body, { cookie })
    await ask('sign-up/email', { name: 'Ada', email: EMAIL, password: PASSWORD })
    await ask('verify-email', { token: tokenIn(await smtp.next(EMAIL)), password: PASSWORD })
    const { cookie, json } = await ask('sign-in/email', { email: EMAIL, password: PASSWORD })
    const begun = await ask('two-factor/enable', { password: PASSWORD }, cookie)
    const on = await ask('two-factor/verify-totp', { code: totp(begun.json.totpURI) }, cookie)
    const { token } = (await auth(rooms, 'GET token', undefined, { cookie: on.cookie })).json
    const caller = await authenticator(rooms).authenticate(`Bearer ${token}`)
    const call = { caller, action: 'test', via: 'REST', signal: new AbortController().signal } as const
    const { key } = await createKey(rooms, call, { name: 'k', scopes: ['profile'] })
    const { dataDir, databaseUrl } = rooms.config
    // Only one process at a time can open a SQLite store.
    if (dialect === 'sqlite') await stack.disposeAsync()

    const env = {
      SMTP_URL: smtp.url,
      VITRINE_DATA_DIR: dataDir,
      VITRINE_SECRET_KEY: SECRET,
      ...(databaseUrl === null ? {} : { DATABASE_URL: databaseUrl }),
    }
    const unknown = await run(['reset-second-factor', 'nobody@example.test'], env)
    assert.deepEqual([unknown.code, unknown.err], [1, 'No account has the e-mail address nobody@example.test.\n'])
    const done = await run(['reset-second-factor', EMAIL.toUpperCase()], env)
    assert.deepEqual([done.code, done.err], [0, ''], done.err)
    assert.equal(done.out, `Removed the second factor of ${EMAIL} and ended 1 session.`)
    assert.match((await smtp.next(EMAIL, /removed the second factor/)).text, /The operator of the service/)
    const again = await run(['reset-second-factor', EMAIL], env)
    assert.deepEqual([again.code, again.err], [1, `The account ${EMAIL} has no second factor.\n`])

    await using store = await openStore({ dataDir, databaseUrl })
    const gate = authenticator({ store, origin: () => 'http://127.0.0.1:3000' })
    assert.equal(await codeOf(gate.authenticate(`Bearer ${token}`)), 'UNAUTHENTICATED')
    await gate.authenticate(`Bearer ${key}`)
    const row = await store.db.selectFrom('accounts').select('twoFactorEnabled').executeTakeFirstOrThrow()
    assert.equal(Boolean(row.twoFactorEnabled), false)
    const [audited] = await store.db
      .selectFrom('audit')
      .select(['account_id', 'client'])
      .where('action', '=', 'resetSecondFactor')
      .execute()
    assert.deepEqual({ ...audited }, { account_id: json.user.id, client: 'vitrine account reset-second-factor' })
  })
}
