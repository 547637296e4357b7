import assert from 'node:assert/strict'
import { scryptSync } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { z } from 'zod'
import { PATHS } from './allowed-paths.ts'
import { OAUTH_ROUTES } from '../contract/oauth-routes.ts'
import { SIGN_IN_ROUTES, type SignInRoute, type SignInRouteName } from '../contract/sign-in-routes.ts'
import { STATUS } from '../errors.ts'
import { createPasskey, signWith } from '../../test/support/authenticator.ts'
import { LINK, startSmtp, tokenIn } from '../../test/support/mail.ts'
import { CLIENT, startRogue } from '../../test/support/oidc.ts'
import { auth, codeOf, openRooms, PASSWORD } from '../../test/support/people.ts'
import { storeSource } from '../../test/support/stores.ts'
import { totp } from '../../test/support/totp.ts'
import { until } from '../../test/support/until.ts'

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
const document = JSON.parse(read('openapi.json'))

test('openapi.json and the list of allowed paths have the same paths under /auth, except for OAuth', () => {
  const documented = Object.entries<object>(document.paths)
    .filter(([path]) => path.startsWith('/auth'))
    .flatMap(([path, operations]) => Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`))
    .filter((name) => !(name in OAUTH_ROUTES))
  assert.deepEqual(documented.sort(), [...PATHS.keys()].sort())
  assert.deepEqual(documented, Object.keys(SIGN_IN_ROUTES).sort())
})

test('each path under /auth has a row in docs/api.md, and its body and codes are in openapi.json', () => {
  const ids = new Set<string>()
  for (const [name, route] of Object.entries<SignInRoute>(SIGN_IN_ROUTES)) {
    const [method = '', path = ''] = name.split(' ')
    assert.match(read('docs/api.md'), new RegExp(`^\\| \`${method} ${path}(\\?token=)?\` +\\|`, 'm'), name)
    const operation = document.paths[path][method.toLowerCase()]
    ids.add(operation.operationId)
    assert.equal(operation.requestBody !== undefined, PATHS.get(name)?.body !== null, name)
    for (const code of route.errors) {
      assert.ok(operation.responses[STATUS[code]].description.includes(code), `${name} ${code}`)
    }
  }
  assert.equal(ids.size, PATHS.size)
})

test('outside of tests, a password is stored as a salted scrypt hash, and only the right password signs in', async () => {
  await using source = await storeSource('sqlite')
  await using rooms = await openRooms(source, {}, { hasRealPasswords: true })
  const email = 'ada@example.test'
  const headers = { origin: 'http://127.0.0.1:3000' }
  const ask = (path: string, password: string, more: object = {}) =>
    auth(rooms, `POST ${path}`, { email, password, ...more }, { headers })
  await ask('sign-up/email', PASSWORD, { name: 'Ada' })
  const { password } = await rooms.store.db.selectFrom('sign_in_methods').select('password').executeTakeFirstOrThrow()
  const [, salt = '', stored] = /^([0-9a-f]{32}):([0-9a-f]{128})$/.exec(password ?? '') ?? []
  const cost = { N: 16_384, r: 16, p: 1, maxmem: 1 << 26 }
  assert.equal(scryptSync(PASSWORD, salt, 64, cost).toString('hex'), stored)
  assert.equal((await ask('sign-in/email', PASSWORD)).json.user.email, email)
  assert.equal(await codeOf(ask('sign-in/email', `${PASSWORD}?`)), 'UNAUTHENTICATED')
})

test('at most two passwords are hashed at the same time, at most one of each block of networks', async () => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const begun: string[] = []
  let most = 0
  let running = 0
  const held = async (password: string) => {
    begun.push(password)
    most = Math.max(most, ++running)
    await released
    running--
  }
  const passwords = {
    hash: async (password: string) => (await held(password), ''),
    verify: async ({ password }: { password: string }) => (await held(password), false),
  }
  await using source = await storeSource('sqlite')
  await using rooms = await openRooms(source, {}, { passwords })
  const origin = 'http://127.0.0.1:3000'
  const ask = (from: string, password: string) =>
    codeOf(
      auth(
        rooms,
        'POST sign-in/email',
        { email: `${password.replaceAll(' ', '.')}@example.test`, password },
        { headers: { origin, 'x-vitrine-client': from } },
      ),
    )
  const first = Array.from({ length: 6 }, (_, n) => ask('192.0.2.1', `first ${n}`))
  await until('the first hash', () => begun.length > 0)
  const second = ask('198.51.100.2', 'second')
  await until('the hash of the other block', () => begun.includes('second'))
  assert.equal(begun.length, 2)
  assert.equal(await ask('203.0.113.3', 'third'), 'OVERLOADED')
  assert.equal(begun.length, 2)
  release()
  const codes = await Promise.all([...first, second])
  assert.deepEqual(new Set(codes), new Set(['UNAUTHENTICATED', 'OVERLOADED']))
  assert.equal(most, 2)
  assert.equal(await ask('203.0.113.3', 'third again'), 'UNAUTHENTICATED')
})

test('strangers from any number of networks do not keep a known browser or a session waiting', async () => {
  const held: (() => void)[] = []
  let begun = 0
  const hold = async (password: string) => {
    if (!password.startsWith('stranger')) return
    begun++
    await new Promise<void>((resolve) => held.push(resolve))
  }
  const passwords = {
    hash: async (password: string) => (await hold(password), password),
    verify: async ({ hash, password }: { hash: string; password: string }) => (await hold(password), hash === password),
  }
  await using source = await storeSource('sqlite')
  await using rooms = await openRooms(source, {}, { passwords })
  const email = 'ada@example.test'
  const headers = (from: string) => ({ origin: 'http://127.0.0.1:3000', 'x-vitrine-client': from })
  const from = headers('198.51.100.1')
  const account = { email, password: PASSWORD }
  const { cookie } = await auth(rooms, 'POST sign-up/email', { name: 'Ada', ...account }, { headers: from })
  const strangers = Array.from({ length: 40 }, (_, n) =>
    codeOf(
      auth(
        rooms,
        'POST sign-in/email',
        { email: `eve${n}@example.test`, password: `stranger ${n}` },
        { headers: headers(`192.0.${n}.1`) },
      ),
    ),
  )
  const known = async (): Promise<number> => {
    await until('two strangers that hash', () => begun === 2)
    const device = /vitrine\.known_device=[^;]+/.exec(cookie)?.[0]
    const { json } = await auth(rooms, 'POST sign-in/email', account, { headers: from, cookie: device })
    assert.equal(json.user.email, email)
    const order = { currentPassword: PASSWORD, newPassword: 'another long password' }
    await auth(rooms, 'POST change-password', order, { headers: from, cookie })
    return begun
  }
  let isOver = false
  const all = Promise.all([known(), ...strangers]).finally(() => (isOver = true))
  while (!isOver) {
    await until('a hash that can end', () => (begun > 1 && held.length > 0) || isOver)
    held.shift()?.()
  }
  const [begunBefore] = await all
  assert.ok(begunBefore < strangers.length, `${begunBefore} strangers were served before`)
})

test('a request whose caller hangs up leaves the queue for hashes', async () => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const begun: string[] = []
  const held = async (password: string) => {
    begun.push(password)
    await released
  }
  const passwords = {
    hash: async (password: string) => (await held(password), ''),
    verify: async ({ password }: { password: string }) => (await held(password), false),
  }
  await using source = await storeSource('sqlite')
  await using rooms = await openRooms(source, {}, { passwords })
  const ask = (n: number, signal?: AbortSignal) => {
    const headers = { origin: 'http://127.0.0.1:3000', 'x-vitrine-client': `192.0.${n}.1` }
    const body = { email: `eve${n}@example.test`, password: `password ${n}` }
    return auth(rooms, 'POST sign-in/email', body, { headers, signal })
  }
  const first = [1, 2].map((n) => codeOf(ask(n)))
  await until('two hashes', () => begun.length === 2)
  const gone = new AbortController()
  const third = ask(3, gone.signal)
  gone.abort(new Error('hung up'))
  await assert.rejects(third, /hung up/)
  release()
  assert.deepEqual(await Promise.all(first), ['UNAUTHENTICATED', 'UNAUTHENTICATED'])
  assert.equal(begun.length, 2)
})

test('each answer under /auth matches openapi.json', async () => {
  await using source = await storeSource('sqlite')
  await using smtp = await startSmtp()
  const origin = 'https://vitrine.example.test'
  await using rogue = await startRogue()
  rogue.claims = { sub: 'ada', email: 'other@example.test' }
  await using rooms = await openRooms(source, {
    VITRINE_OIDC_ISSUER: rogue.url,
    VITRINE_OIDC_CLIENT_ID: CLIENT.id,
    VITRINE_OIDC_CLIENT_SECRET: CLIENT.secret,
    SMTP_URL: smtp.url,
    VITRINE_PUBLIC_URL: origin,
    VITRINE_SIGNUP: 'open',
  })
  const seen = new Set<string>()
  const ask = async (name: SignInRouteName, body?: object, cookie = '', query = '') => {
    const [method = '', path = ''] = name.split(' ')
    const answer = await auth(rooms, `${method} ${path.slice('/auth/'.length)}${query}`, body, { cookie })
    const route: SignInRoute = SIGN_IN_ROUTES[name]
    if (route.answer === 'page') assert.match(answer.text, /^<!doctype html>/)
    else if (route.answer === 'redirect') assert.match(answer.location ?? '', /^\/app\//)
    else assert.deepEqual(strict(route.answer).safeParse(answer.json).error?.issues ?? [], [], name)
    seen.add(name)
    for (const made of [cookie, answer.cookie]) {
      const secret = /session_token=([^;.]+)/.exec(made)?.[1]
      if (secret !== undefined) assert.ok(!answer.text.includes(secret), `${name} shows the secret of the cookie`)
    }
    return answer
  }
  await ask('GET /auth/options')
  const [email, next] = ['ada@example.test', 'another long password']
  const account = { email, password: PASSWORD }
  await ask('POST /auth/sign-up/email', { name: 'Ada', ...account })
  await ask('POST /auth/send-verification-email', { email })
  const token = tokenIn(await smtp.next(email))
  await ask('GET /auth/verify-email', undefined, '', `?token=${token}`)
  await ask('POST /auth/verify-email', { token, password: PASSWORD })
  const { cookie } = await ask('POST /auth/sign-in/email', account)
  await ask('GET /auth/get-session', undefined, cookie)
  await ask('GET /auth/get-session')
  assert.equal((await ask('GET /auth/token', undefined, cookie)).json.expiresIn, 600)
  const list = await ask('GET /auth/list-sessions', undefined, cookie)
  const wanted = await ask('POST /auth/passkey/add-options', {}, cookie)
  const { passkey, credential } = createPasskey(origin, wanted.json)
  const made = { name: 'Laptop', response: credential }
  await ask('POST /auth/passkey/add', made, `${cookie}; ${wanted.cookie}`)
  const ways = await ask('GET /auth/sign-in-methods', undefined, cookie)
  const asked = await ask('POST /auth/passkey/sign-in-options', {})
  const response = signWith(passkey, origin, asked.json.challenge)
  await ask('POST /auth/passkey/sign-in', { response }, asked.cookie)
  const [{ id }] = ways.json.passkeys
  await ask('POST /auth/passkey/rename', { id, name: 'Old laptop' }, cookie)
  await ask('POST /auth/passkey/remove', { id }, cookie)
  const trip = await ask('POST /auth/connect-provider', { provider: 'oidc' }, cookie)
  await ask('GET /auth/callback/oidc', undefined, `${cookie}; ${trip.cookie}`, rogue.back(trip.json.url).search)
  const other = await ask('POST /auth/sign-in/provider', { provider: 'oidc' })
  const signedIn = await ask('GET /auth/callback/oidc', undefined, other.cookie, rogue.back(other.json.url).search)
  assert.match(signedIn.cookie, /session_token=/)
  assert.equal((await ask('GET /auth/sign-in-methods', undefined, signedIn.cookie)).json.providers.length, 1)
  await ask('POST /auth/disconnect-provider', { provider: 'oidc' }, cookie)
  for (const provider of ['github', 'google'] as const) await ask(`GET /auth/callback/${provider}`)
  const begun = await ask('POST /auth/two-factor/enable', { password: PASSWORD }, cookie)
  const on = await ask('POST /auth/two-factor/verify-totp', { code: totp(begun.json.totpURI) }, cookie)
  const half = await ask('POST /auth/sign-in/email', account)
  const [one, two, three] = begun.json.backupCodes
  const byCode = await ask('POST /auth/two-factor/verify-backup-code', { code: one }, half.cookie)
  await ask('POST /auth/revoke-session', { id: list.json[0].id }, byCode.cookie)
  await ask('POST /auth/two-factor/get-totp-uri', { password: PASSWORD, code: two }, on.cookie)
  const codes = { password: PASSWORD, code: three }
  const renewed = await ask('POST /auth/two-factor/generate-backup-codes', codes, on.cookie)
  const change = { currentPassword: PASSWORD, newPassword: next }
  const changed = await ask('POST /auth/change-password', change, on.cookie)
  await ask('POST /auth/revoke-other-sessions', {}, changed.cookie)
  const end = { password: next, code: renewed.json.backupCodes[0] }
  const off = await ask('POST /auth/two-factor/disable', end, changed.cookie)
  await ask('POST /auth/request-password-reset', { email })
  const link = { token: tokenIn(await smtp.next(email, /reset-password/)) }
  await ask('GET /auth/reset-password', undefined, '', `?token=${link.token}`)
  await ask('POST /auth/reset-password/preview', link)
  await ask('POST /auth/revoke-sessions', {}, off.cookie)
  await ask('POST /auth/sign-out', {}, off.cookie)
  await ask('POST /auth/reset-password', { ...link, newPassword: PASSWORD })
  assert.deepEqual([...seen].sort(), [...PATHS.keys()].sort())
  assert.ok(smtp.received.some((mail) => LINK.test(mail.text)))
})

function strict(schema: z.ZodType): z.ZodType {
  if (schema instanceof z.ZodObject) return schema.strict()
  if (schema instanceof z.ZodArray && schema.element instanceof z.ZodType) return z.array(strict(schema.element))
  return schema
}
