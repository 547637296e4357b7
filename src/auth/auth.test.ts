import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { SignJWT, generateKeyPair, importJWK } from 'jose'
import { asId, newId, type TeamId } from '../ids.ts'
import { DIALECTS, storeSource, type StoreSource } from '../../test/support/stores.ts'
import {
  auth,
  callOf,
  codeOf,
  openRooms,
  PASSWORD,
  refusal,
  someDatasource,
  someone,
  type Rooms,
} from '../../test/support/people.ts'
import { account, deleteAccount, renameAccount } from './own-account.ts'
import { changeKey, createKey, listKeys, revokeKey, rotateKey } from './api-keys.ts'
import { authenticator, type Authenticator } from './authenticate.ts'
import { holds, mayEnter } from './caller.ts'
import { isKeyText, makeKeyText } from './key-format.ts'
import { storedTime } from '../store/better-auth-times.ts'
import { createTeam } from '../teams/teams.ts'

const bearer = (token: string) => `Bearer ${token}`
const signUp = (rooms: Rooms, email: string, more: object = {}) =>
  auth(rooms, 'POST sign-up/email', { name: 'Ada', email, password: PASSWORD, ...more })
const signIn = (rooms: Rooms, email: string, password = PASSWORD) =>
  auth(rooms, 'POST sign-in/email', { email, password })
const sessionOf = async (rooms: Rooms, cookie: string): Promise<{ id: string }> =>
  (await auth(rooms, 'GET get-session', undefined, { cookie })).json.session
const tokenOf = async (rooms: Rooms, cookie: string): Promise<string> =>
  (await auth(rooms, 'GET token', undefined, { cookie })).json.token

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await setTimeout(10)
}

for (const dialect of DIALECTS) {
  describe(`authentication on ${dialect}`, () => {
    let source: StoreSource
    before(async () => {
      source = await storeSource(dialect)
    })
    after(() => source[Symbol.asyncDispose]())

    test('signing up starts a session with an access token, which is valid for ten minutes', async () => {
      await using rooms = await openRooms(source)
      const gate = authenticator(rooms)
      const { cookie, cookies, json } = await signUp(rooms, 'Ada@Example.test')
      assert.match(cookies[0] ?? '', /; Path=\/auth; HttpOnly; SameSite=Lax$/)
      const token = await tokenOf(rooms, cookie)
      const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
      assert.deepEqual(Object.keys(claims).sort(), ['aud', 'exp', 'iat', 'iss', 'sid', 'sub', 'typ'])
      assert.equal(claims.exp - claims.iat, 600)
      const caller = await gate.authenticate(bearer(token))
      assert.ok(caller.kind === 'session' && caller.accountId === json.user.id && caller.sessionId === claims.sid)
      assert.ok(holds(caller, 'data:read') && mayEnter(caller, newId()))
      const call = callOf(rooms, caller.accountId)
      const shown = await account(rooms, call)
      assert.deepEqual(
        { ...shown, createdAt: typeof shown.createdAt },
        {
          id: json.user.id,
          email: 'ada@example.test',
          name: 'Ada',
          avatarUrl: null,
          emailVerified: false,
          createdAt: 'string',
        },
      )
      // The library uses the system clock for `exp`, so move the test's clock.
      rooms.clock.at = claims.exp * 1000
      await assertRefused(gate, bearer(token))
    })

    test('sign-out, a password change and the revocation of a session end access tokens immediately', async () => {
      await using rooms = await openRooms(source)
      const gate = authenticator(rooms)
      const first = await signUp(rooms, 'ada@example.test')
      const kept = await tokenOf(rooms, first.cookie)
      const second = await signIn(rooms, 'ada@example.test')
      const out = await tokenOf(rooms, second.cookie)
      await gate.authenticate(bearer(out))
      await auth(rooms, 'POST sign-out', {}, { cookie: second.cookie })
      await assertRefused(gate, bearer(out))
      assert.equal(await codeOf(tokenOf(rooms, second.cookie)), 'UNAUTHENTICATED')

      const third = await signIn(rooms, 'ada@example.test')
      const revoked = await tokenOf(rooms, third.cookie)
      const sessions = (await auth(rooms, 'GET list-sessions', undefined, { cookie: first.cookie })).json
      assert.equal(sessions.length, 2)
      await gate.authenticate(bearer(revoked))
      await auth(
        rooms,
        'POST revoke-session',
        { id: (await sessionOf(rooms, third.cookie)).id },
        { cookie: first.cookie },
      )
      await assertRefused(gate, bearer(revoked))

      const fourth = await signIn(rooms, 'ada@example.test')
      await gate.authenticate(bearer(kept))
      const change = { currentPassword: PASSWORD, newPassword: 'another long password' }
      assert.equal(
        await codeOf(
          auth(rooms, 'POST change-password', { ...change, currentPassword: 'no' }, { cookie: fourth.cookie }),
        ),
        'INVALID_REQUEST',
      )
      const changed = await auth(rooms, 'POST change-password', change, { cookie: fourth.cookie })
      await assertRefused(gate, bearer(kept))
      await gate.authenticate(bearer(await tokenOf(rooms, changed.cookie)))
      assert.equal(await codeOf(signIn(rooms, 'ada@example.test')), 'UNAUTHENTICATED')
      await signIn(rooms, 'ada@example.test', change.newPassword)
    })

    test('a wrong password and an unknown address get the same answer, and a taken address cannot sign up', async () => {
      await using rooms = await openRooms(source)
      await signUp(rooms, 'ada@example.test')
      const wrong = await refusal(signIn(rooms, 'ada@example.test', 'not the password'))
      assert.deepEqual(await refusal(signIn(rooms, 'nobody@example.test', 'not the password')), wrong)
      assert.equal(wrong['code'], 'UNAUTHENTICATED')
      assert.equal(await codeOf(signUp(rooms, 'ADA@example.test')), 'CONFLICT')
      const twice = await Promise.allSettled([signUp(rooms, 'bo@example.test'), signUp(rooms, 'bo@example.test')])
      assert.deepEqual(twice.map((each) => each.status).sort(), ['fulfilled', 'rejected'])
      const lost = twice.find((each) => each.status === 'rejected')
      assert.equal(await codeOf(Promise.reject(lost?.reason)), 'CONFLICT')
    })

    test('a changed or unsigned token, a token signed with another key, and a malformed header are refused', async () => {
      await using rooms = await openRooms(source)
      const gate = authenticator(rooms)
      const { cookie } = await signUp(rooms, 'ada@example.test')
      const token = await tokenOf(rooms, cookie)
      const [head = '', body = '', signature = ''] = token.split('.')
      const claims = JSON.parse(Buffer.from(body, 'base64url').toString())
      const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
      const { kid } = JSON.parse(Buffer.from(head, 'base64url').toString())
      const own = await generateKeyPair('EdDSA', { extractable: true })
      const forged = (more: object) =>
        new SignJWT({ ...claims, ...more }).setProtectedHeader({ alg: 'EdDSA', kid }).sign(own.privateKey)
      const publicKey = JSON.parse(
        (await rooms.store.db.selectFrom('signing_keys').select('publicKey').executeTakeFirstOrThrow()).publicKey,
      )
      const bad = [
        [head, part({ ...claims, sub: newId() }), signature].join('.'),
        [head, part({ ...claims, exp: claims.exp + 9e5 }), signature].join('.'),
        `${part({ alg: 'none', kid })}.${body}.`,
        `${head}.${body}.`,
        await forged({}),
        await new SignJWT(claims)
          .setProtectedHeader({ alg: 'HS256', kid })
          .sign(Buffer.from(String(publicKey.x), 'base64url')),
        'a.b.c',
        'nonsense',
        cookie.split('=')[1] ?? '',
      ]
      for (const each of bad) await assertRefused(gate, bearer(each))
      for (const header of [undefined, '', 'Bearer', 'Bearer ', token, `Basic ${token}`, `${bearer(token)} more`]) {
        await assertRefused(gate, header)
      }
      await gate.authenticate(`bearer ${token}`)
      await importJWK(publicKey, 'EdDSA')
    })

    test('a token with a valid signature but wrong claims is refused', async () => {
      await using rooms = await openRooms(source)
      const gate = authenticator(rooms)
      const { cookie } = await signUp(rooms, 'ada@example.test')
      const claims = JSON.parse(Buffer.from((await tokenOf(rooms, cookie)).split('.')[1] ?? '', 'base64url').toString())
      const own = await generateKeyPair('EdDSA', { extractable: true })
      const { exportJWK } = await import('jose')
      const createdAt = storedTime(dialect, Date.now())
      const row = {
        id: 'own',
        publicKey: JSON.stringify(await exportJWK(own.publicKey)),
        privateKey: '',
        createdAt,
        expiresAt: null,
        alg: 'EdDSA',
        crv: 'Ed25519',
      }
      await rooms.store.write((tx) => tx.insertInto('signing_keys').values(row).execute())
      const signed = (more: object) =>
        new SignJWT({ ...claims, ...more }).setProtectedHeader({ alg: 'EdDSA', kid: 'own' }).sign(own.privateKey)
      await gate.authenticate(bearer(await signed({})))
      const wrong = [{ aud: 'other' }, { iss: 'other' }, { typ: 'refresh' }, { typ: undefined }, { sid: newId() }]
      for (const more of [...wrong, { sub: newId() }, { exp: 1 }, { exp: undefined }]) {
        await assertRefused(gate, bearer(await signed(more)))
      }
    })

    test('unknown paths under /auth are refused, and so are undeclared or invalid fields of a sign-up', async () => {
      await using rooms = await openRooms(source)
      for (const route of [
        'GET jwks',
        'GET ok',
        'GET error',
        'POST delete-user',
        'POST update-user',
        'POST sign-in/social',
        'GET sign-out',
        'GET no-such',
        'POST token',
        'GET get-session/',
      ]) {
        assert.equal(await codeOf(auth(rooms, route)), 'NOT_FOUND', route)
      }
      const order = { name: 'Ada', email: 'ada@example.test', password: PASSWORD }
      for (const body of [
        { ...order, role: 'OWNER' },
        { ...order, emailVerified: true },
        { ...order, email: 'ada' },
        { ...order, password: 'short' },
        { ...order, password: 'x'.repeat(129) },
        { ...order, name: ' ' },
        { ...order, name: 'a\0' },
        {},
        '{',
        '[]',
      ]) {
        const { code, details } = await refusal(auth(rooms, 'POST sign-up/email', body))
        assert.equal(code, 'INVALID_REQUEST', JSON.stringify(body))
        assert.ok(Array.isArray(details) && details.length > 0)
      }
    })

    test('a page of another site cannot sign anybody out', async () => {
      await using rooms = await openRooms(source)
      const gate = authenticator(rooms)
      const { cookie } = await signUp(rooms, 'ada@example.test')
      const token = await tokenOf(rooms, cookie)
      for (const headers of [
        { origin: 'https://evil.example' },
        { origin: 'null' },
        { origin: 'http://127.0.0.1:8080' },
        { origin: 'http://127.0.0.1.evil.example:3000' },
        { 'sec-fetch-site': 'cross-site' },
      ]) {
        const asked = { cookie, headers }
        assert.equal(await codeOf(auth(rooms, 'POST sign-out', {}, asked)), 'SIGN_IN_REFUSED', JSON.stringify(headers))
      }
      await gate.authenticate(bearer(token))
      const named = { cookie, headers: { origin: 'http://localhost:3000', referer: 'http://localhost:3000/app' } }
      await auth(rooms, 'GET get-session', undefined, named)
      await auth(rooms, 'POST sign-out', {}, named)
      await assertRefused(gate, bearer(token))
    })

    test('pages of the public URL may call /auth, and its cookie is for TLS only', async () => {
      await using rooms = await openRooms(source, { VITRINE_PUBLIC_URL: 'https://vitrine.example.com' })
      const headers = { origin: 'https://vitrine.example.com' }
      const order = { name: 'Ada', email: 'ada@example.test', password: PASSWORD }
      const { cookies, cookie } = await auth(rooms, 'POST sign-up/email', order, { headers })
      assert.match(cookies[0] ?? '', /; Secure/)
      await auth(rooms, 'POST sign-out', {}, { cookie, headers })
    })

    test('if sign-up is closed, only one of several concurrent sign-ups to an empty store succeeds', async () => {
      await using rooms = await openRooms(source, { VITRINE_SIGNUP: 'closed' })
      const all = await Promise.allSettled([1, 2, 3, 4].map((n) => signUp(rooms, `a${n}@example.test`)))
      assert.deepEqual(all.map((each) => each.status).sort(), ['fulfilled', 'rejected', 'rejected', 'rejected'])
    })

    test('the first account needs the setup token beyond loopback, and later accounts may need an invitation', async () => {
      await using closed = await openRooms(source, { VITRINE_SIGNUP: 'closed' })
      await signUp(closed, 'first@example.test')
      assert.equal(await codeOf(signUp(closed, 'second@example.test')), 'SIGN_IN_REFUSED')

      await using rooms = await openRooms(source, { HOST: '0.0.0.0' })
      const setupToken = await rooms.signIn.setupToken()
      assert.ok(setupToken !== null && setupToken.length > 30)
      for (const more of [{}, { setupToken: 'x'.repeat(43) }]) {
        const refused = await refusal(signUp(rooms, 'first@example.test', more))
        assert.deepEqual([refused['code'], refused['reason']], ['SIGN_IN_REFUSED', 'SETUP_TOKEN_NEEDED'])
      }
      const { json } = await signUp(rooms, 'first@example.test', { setupToken })
      assert.equal(await rooms.signIn.setupToken(), null)
      assert.equal(await codeOf(signUp(rooms, 'second@example.test', { setupToken })), 'SIGN_IN_REFUSED')

      const { addMember } = await import('../teams/invitations.ts')
      const call = callOf(rooms, json.user.id)
      const team = await createTeam(rooms, call, { name: 'T' })
      const own = { teamId: team.id as never, accountId: json.user.id, role: 'OWNER', status: 'ACTIVE' } as const
      const { inviteToken } = await addMember(rooms, call, own, { email: 'Second@example.test', role: 'MEMBER' })
      assert.equal(await codeOf(signUp(rooms, 'third@example.test', { inviteToken })), 'SIGN_IN_REFUSED')
      await signUp(rooms, 'second@example.test', { inviteToken })
    })

    test('sign-in is refused for a time after ten wrong passwords, and correct passwords do not count', async () => {
      await using rooms = await openRooms(source)
      await signUp(rooms, 'ada@example.test')
      for (let i = 0; i < 3; i++) await signIn(rooms, 'ada@example.test')
      for (let i = 0; i < 10; i++) {
        assert.equal(await codeOf(signIn(rooms, 'ada@example.test', 'wrong')), 'UNAUTHENTICATED')
      }
      const { code, retryAfter } = await refusal(signIn(rooms, 'ada@example.test'))
      assert.equal(code, 'RATE_LIMITED')
      assert.ok(Number.isInteger(retryAfter) && Number(retryAfter) > 0)
      rooms.clock.at += 300_000
      await signIn(rooms, 'ada@example.test')
    })

    test('a key is shown once, is found by its hash, and ends when it is revoked or expires', async () => {
      await using rooms = await openRooms(source)
      const gate = authenticator(rooms)
      const call = await someone(rooms, 'ada@example.test')
      const made = await createKey(rooms, call, { name: 'k', scopes: ['profile'] })
      assert.match(made.key, /^sk_live_[0-9A-Za-z]{38}$/)
      const [row] = await rooms.store.db.selectFrom('api_keys').selectAll().execute()
      assert.ok(!JSON.stringify(row).includes(made.key))
      const { key: _, ...listed } = made
      assert.deepEqual(await listKeys(rooms, call), [listed])

      const caller = await gate.authenticate(bearer(made.key))
      assert.ok(caller.kind === 'key' && caller.keyId === made.id && caller.accountId === call.caller.accountId)
      assert.deepEqual([holds(caller, 'profile'), holds(caller, 'data:read')], [true, false])
      const flipped = made.key.slice(0, 12) + (made.key[12] === 'x' ? 'y' : 'x') + made.key.slice(13)
      for (const bad of [flipped, made.key.slice(0, -1), `${made.key}A`, made.key.toUpperCase(), makeKeyText()]) {
        await assertRefused(gate, bearer(bad))
      }
      await revokeKey(rooms, call, made.id as never)
      await assertRefused(gate, bearer(made.key))
      assert.deepEqual(await listKeys(rooms, call), [])
      assert.equal(await codeOf(revokeKey(rooms, call, made.id as never)), 'NOT_FOUND')

      const expiresAt = new Date(rooms.now() + 5_000).toISOString().replace('Z', '+00:00')
      const brief = await createKey(rooms, call, { name: 'b', scopes: ['profile'], expiresAt })
      assert.equal(brief.expiresAt, new Date(rooms.now() + 5_000).toISOString())
      await gate.authenticate(bearer(brief.key))
      rooms.clock.at += 5_000
      await assertRefused(gate, bearer(brief.key))
      assert.equal(
        await codeOf(createKey(rooms, call, { name: 'b', scopes: ['profile'], expiresAt })),
        'INVALID_REQUEST',
      )
    })

    test('a rotated key works for its grace period, and its replacement has the same restrictions and ended teams', async () => {
      await using rooms = await openRooms(source)
      const gate = authenticator(rooms)
      const call = await someone(rooms, 'ada@example.test')
      const team = await createTeam(rooms, call, { name: 'T' })
      const old = await createKey(rooms, call, { name: 'k', scopes: ['profile'], teamIds: [team.id] })
      await rooms.store.write((tx) =>
        tx
          .updateTable('api_keys')
          .set({ ended_team_ids: JSON.stringify([team.id]) })
          .execute(),
      )
      const next = await rotateKey(rooms, call, old.id as never, { graceSeconds: 60 })
      assert.notEqual(next.key, old.key)
      assert.deepEqual([next.name, next.teamIds, next.scopes], ['k', [team.id], ['profile']])
      await gate.authenticate(bearer(old.key))
      const caller = await gate.authenticate(bearer(next.key))
      assert.equal(mayEnter(caller, team.id as never), false)
      rooms.clock.at += 60_000
      await assertRefused(gate, bearer(old.key))
      assert.equal(await codeOf(rotateKey(rooms, call, old.id as never, {})), 'NOT_FOUND')
      const last = await rotateKey(rooms, call, next.id as never, {})
      await assertRefused(gate, bearer(next.key))
      await gate.authenticate(bearer(last.key))
      const stranger = await someone(rooms, 'eve@example.test')
      assert.equal(await codeOf(rotateKey(rooms, stranger, last.id as never, {})), 'NOT_FOUND')
      assert.equal(await codeOf(revokeKey(rooms, stranger, last.id as never)), 'NOT_FOUND')
    })

    test('a key shows its state, its replacement and its last client', async () => {
      await using rooms = await openRooms(source)
      const gate = authenticator(rooms)
      const call = await someone(rooms, 'ada@example.test')
      const old = await createKey(rooms, call, { name: 'k', scopes: ['profile'] })
      await gate.authenticate(bearer(old.key), 'agent/1.0 \u{1f600}')
      // Keys are listed by creation time.
      rooms.clock.at += 1_000
      const next = await rotateKey(rooms, call, old.id as never, { graceSeconds: 60 })
      const shown = async () => {
        const keys = await listKeys(rooms, call)
        return keys.map((key) => [key.id, key.state, key.replaces, key.replacedBy, key.lastClient])
      }
      await until(async () => (await shown())[0]?.[4] !== undefined)
      assert.deepEqual(await shown(), [
        [old.id, 'GRACE', undefined, next.id, 'agent/1.0 ??'],
        [next.id, 'ACTIVE', old.id, undefined, undefined],
      ])
      rooms.clock.at += 60_000
      assert.deepEqual((await shown())[0]?.slice(0, 2), [old.id, 'EXPIRED'])
    })

    test('a key can be renamed, and its expiry can be changed until the key has expired or was rotated', async () => {
      await using rooms = await openRooms(source)
      const gate = authenticator(rooms)
      const call = await someone(rooms, 'ada@example.test')
      const key = await createKey(rooms, call, { name: 'k', scopes: ['profile'] })
      const change = (id: string, body: Parameters<typeof changeKey>[3], by = call) =>
        changeKey(rooms, by, id as never, body)
      const { key: _, ...listed } = key
      assert.deepEqual(await change(key.id, { name: 'new' }), { ...listed, name: 'new' })
      const expiresAt = new Date(rooms.now() + 5_000).toISOString()
      assert.equal((await change(key.id, { expiresAt: expiresAt.replace('Z', '+00:00') })).expiresAt, expiresAt)
      await gate.authenticate(bearer(key.key))
      assert.equal((await change(key.id, { expiresAt: null })).expiresAt, null)
      rooms.clock.at += 5_000
      await gate.authenticate(bearer(key.key))
      assert.equal(await codeOf(change(key.id, { expiresAt })), 'INVALID_REQUEST')
      const stranger = await someone(rooms, 'eve@example.test')
      assert.equal(await codeOf(change(key.id, { name: 'x' }, stranger)), 'NOT_FOUND')

      await rotateKey(rooms, call, key.id as never, { graceSeconds: 60 })
      assert.equal((await change(key.id, { name: 'old' })).state, 'GRACE')
      assert.equal(await codeOf(change(key.id, { expiresAt: null })), 'CONFLICT')
      rooms.clock.at += 60_000
      assert.equal(await codeOf(change(key.id, { expiresAt: null })), 'CONFLICT')
      await assertRefused(gate, bearer(key.key))
      await revokeKey(rooms, call, key.id as never)
      assert.equal(await codeOf(change(key.id, { name: 'x' })), 'NOT_FOUND')
    })

    test('a key can be restricted only to teams and datasources of its account', async () => {
      await using rooms = await openRooms(source)
      const gate = authenticator(rooms)
      const call = await someone(rooms, 'ada@example.test')
      const other = await someone(rooms, 'eve@example.test')
      const team = await createTeam(rooms, call, { name: 'T' })
      const foreign = await createTeam(rooms, other, { name: 'F' })
      const datasource = await someDatasource(rooms, team.id)
      const theirs = await someDatasource(rooms, foreign.id)
      const order = { name: 'k', scopes: ['data:read'] as const }
      const { key } = await createKey(rooms, call, { ...order, teamIds: [team.id], datasourceIds: [datasource] })
      const caller = await gate.authenticate(bearer(key))
      assert.deepEqual([mayEnter(caller, team.id as never), mayEnter(caller, foreign.id as never)], [true, false])
      const wrong = await refusal(createKey(rooms, call, { ...order, teamIds: [foreign.id], datasourceIds: [theirs] }))
      assert.deepEqual(wrong['details'], [
        'teamIds: contains a team that you do not belong to',
        'datasourceIds: contains a datasource that you do not reach',
      ])
      const none = await refusal(createKey(rooms, call, { ...order, teamIds: [newId()], datasourceIds: [newId()] }))
      assert.deepEqual(none, wrong)
    })

    test('the refusal of a key does not reveal whether the caller’s team has a datasource that the caller cannot reach', async () => {
      await using rooms = await openRooms(source)
      const [owner, member] = [await someone(rooms, 'ada@example.test'), await someone(rooms, 'bo@example.test')]
      const team = await createTeam(rooms, owner, { name: 'T' })
      const at = new Date(rooms.now()).toISOString()
      const row = { team_id: asId<TeamId>(team.id), account_id: member.caller.accountId, created_at: at }
      const join = (status: 'ACTIVE' | 'INVITED') =>
        rooms.store.write(async (tx) => {
          await tx.deleteFrom('memberships').where('account_id', '=', row.account_id).execute()
          await tx
            .insertInto('memberships')
            .values({ ...row, role: 'MEMBER', status })
            .execute()
        })
      const [open, managed, listed] = [
        await someDatasource(rooms, team.id),
        await someDatasource(rooms, team.id, { minRole: 'ADMIN' }),
        await someDatasource(rooms, team.id, { accessMode: 'EXPLICIT' }),
      ]
      const make = (id: string) => createKey(rooms, member, { name: 'k', scopes: ['data:read'], datasourceIds: [id] })
      const nobodys = await refusal(make(newId()))
      await join('ACTIVE')
      for (const id of [managed, listed]) assert.deepEqual(await refusal(make(id)), nobodys)
      await make(open)
      await rooms.store.write((tx) =>
        tx.insertInto('access_entries').values({ datasource_id: listed, account_id: row.account_id }).execute(),
      )
      await make(listed)
      await join('INVITED')
      for (const id of [open, listed]) assert.deepEqual(await refusal(make(id)), nobodys)
    })

    test('an account can have at most a hundred keys, and its oldest revoked keys are deleted', async () => {
      await using rooms = await openRooms(source)
      const call = await someone(rooms, 'ada@example.test')
      const other = await someone(rooms, 'bo@example.test')
      const order = { name: 'k', scopes: ['profile'] as const }
      for (let i = 0; i < 100; i++) await createKey(rooms, call, order)
      assert.equal(await codeOf(createKey(rooms, call, order)), 'CONFLICT')
      await createKey(rooms, other, order)
      const [first, second] = await listKeys(rooms, call)
      // During a grace period both keys count, which is one too many. Without it, only the new key counts.
      assert.equal(await codeOf(rotateKey(rooms, call, first?.id as never, { graceSeconds: 60 })), 'CONFLICT')
      assert.equal((await listKeys(rooms, call)).length, 100)
      let id = first?.id
      for (let i = 0; i < 110; i++) {
        rooms.clock.at++
        id = (await rotateKey(rooms, call, id as never, {})).id
      }
      const kept = await rooms.store.db
        .selectFrom('api_keys')
        .select(['id', 'revoked_at'])
        .where('account_id', '=', call.caller.accountId)
        .execute()
      assert.deepEqual([kept.length, kept.some((row) => row.id === first?.id)], [200, false])
      await revokeKey(rooms, call, second?.id as never)
      await createKey(rooms, call, order)
    })

    test('after its grace period, a rotated key does not count and is not listed when another key is made', async () => {
      await using rooms = await openRooms(source)
      const call = await someone(rooms, 'ada@example.test')
      const order = { name: 'k', scopes: ['profile'] as const }
      for (let i = 0; i < 99; i++) await createKey(rooms, call, order)
      const [first] = await listKeys(rooms, call)
      const next = await rotateKey(rooms, call, first?.id as never, { graceSeconds: 60 })
      rooms.clock.at += 59_999
      assert.equal(await codeOf(rotateKey(rooms, call, next.id as never, { graceSeconds: 60 })), 'CONFLICT')
      assert.equal((await listKeys(rooms, call)).length, 100)
      rooms.clock.at += 1
      const last = await rotateKey(rooms, call, next.id as never, { graceSeconds: 60 })
      const ids = (await listKeys(rooms, call)).map(({ id }) => id)
      assert.deepEqual([ids.length, ids.includes(first?.id ?? ''), ids.at(-1)], [100, false, last.id])
    })

    test('the last use of a key is stored at most once a minute, and a call does not wait for this', async () => {
      await using rooms = await openRooms(source)
      const gate = authenticator(rooms)
      const call = await someone(rooms, 'ada@example.test')
      const { key } = await createKey(rooms, call, { name: 'k', scopes: ['profile'] })
      const started = new Date(rooms.now()).toISOString()
      await gate.authenticate(bearer(key))
      rooms.clock.at += 59_000
      await gate.authenticate(bearer(key))
      // On SQLite, this write ends after all earlier writes. On PostgreSQL, the loop waits for them.
      await rooms.store.append((tx) => tx.selectFrom('teams').select('id').execute())
      const used = async () => (await listKeys(rooms, call))[0]?.lastUsedAt
      for (let i = 0; (await used()) === null && i < 100; i++) await new Promise(setImmediate)
      assert.equal(await used(), started)
    })

    test('an account can be renamed, and deleted with its keys unless it is the last OWNER of a team', async () => {
      await using rooms = await openRooms(source)
      const gate = authenticator(rooms)
      const call = await someone(rooms, 'ada@example.test')
      assert.equal((await renameAccount(rooms, call, { name: 'Ada L.' })).name, 'Ada L.')
      const { key } = await createKey(rooms, call, { name: 'k', scopes: ['profile'] })
      const team = await createTeam(rooms, call, { name: 'T' })
      const confirm = 'ada@example.test'
      assert.equal(await codeOf(deleteAccount(rooms, call, {})), 'REAUTHENTICATION_REQUIRED')
      assert.equal(await codeOf(deleteAccount(rooms, call, { confirm: 'no' })), 'REAUTHENTICATION_REQUIRED')
      assert.equal(await codeOf(deleteAccount(rooms, call, { confirm })), 'CONFLICT')
      await rooms.store.write((tx) =>
        tx
          .deleteFrom('teams')
          .where('id', '=', team.id as never)
          .execute(),
      )
      rooms.clock.at += 601_000
      assert.equal(await codeOf(deleteAccount(rooms, call, { confirm })), 'REAUTHENTICATION_REQUIRED')
      await deleteAccount(rooms, callOf(rooms, call.caller.accountId), { confirm })
      await assertRefused(gate, bearer(key))
      assert.equal(await codeOf(account(rooms, call)), 'UNAUTHENTICATED')
    })
  })
}

test('the checksum of a key detects typing errors', () => {
  const key = makeKeyText()
  assert.ok(isKeyText(key))
  assert.notEqual(makeKeyText(), key)
  for (let i = 8; i < key.length; i++) {
    const other = key[i] === 'a' ? 'b' : 'a'
    assert.equal(isKeyText(key.slice(0, i) + other + key.slice(i + 1)), false)
  }
})

let first: unknown
/** The refusal must be the same for every cause. */
async function assertRefused(gate: Authenticator, authorization: string | undefined): Promise<void> {
  const refused = await refusal(gate.authenticate(authorization))
  assert.equal(refused['code'], 'UNAUTHENTICATED')
  first ??= refused
  assert.deepEqual(refused, first)
}
