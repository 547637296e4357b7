// Tests OAuth on both stores, without HTTP.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { sql } from 'kysely'
import { endGrant, listGrants } from '../auth/grants.ts'
import { deleteAccount } from '../auth/own-account.ts'
import { asId, newId, type AccountId, type GrantId, type TeamId } from '../ids.ts'
import { storedTime } from '../store/better-auth-times.ts'
import { ROWS_A_PORTION } from '../store/delete-in-portions.ts'
import { createTeam } from '../teams/teams.ts'
import {
  asked,
  authorized,
  authorizePath,
  connected,
  decide,
  exchange,
  form,
  onRooms,
  open,
  pkce,
  refresh,
  register,
  registered,
  tokensIn,
  type Browser,
  type Service,
} from '../../test/support/oauth.ts'
import { auth, callOf, openRooms, PASSWORD, type Rooms } from '../../test/support/people.ts'
import { largestTurn } from '../../test/support/largest-turn.ts'
import { DIALECTS, storeSource, type StoreSource } from '../../test/support/stores.ts'
import { until } from '../../test/support/until.ts'
import { REFRESHES } from './exchange-and-revoke-tokens.ts'
import { CLIENTS_AT_A_TIME } from './unused-clients.ts'

async function someone(rooms: Rooms, name: string): Promise<Browser> {
  const order = { name, email: `${name.toLowerCase()}@example.test`, password: PASSWORD }
  const { cookie, json } = await auth(rooms, 'POST sign-up/email', order)
  return { id: json.user.id, cookie }
}

/** Ends the time in which a used refresh token still gets the same answer. */
const endReplay = ({ store }: Rooms) =>
  store.write((tx) =>
    tx
      .updateTable('oauth_refresh_tokens')
      .set({ rotationReplayExpiresAt: storedTime(store.dialect, 1000) })
      .where('revoked', 'is not', null)
      .execute(),
  )

const errorOf = ({ status, json }: { readonly status: number; readonly json: { error?: unknown } }) => [
  status,
  json.error,
]
const INVALID = [400, 'invalid_grant']

function floodOf({ store }: Rooms, count: number, createdAt: number) {
  return Array.from({ length: count }, () => ({
    ...{ id: newId(), clientId: newId(), name: 'flood', redirectUris: '[]', grantTypes: '[]' },
    ...{ tokenEndpointAuthMethod: 'none', createdAt: storedTime(store.dialect, createdAt) },
  }))
}

async function addClients({ store }: Rooms, rows: ReturnType<typeof floodOf>): Promise<void> {
  for (let from = 0; from < rows.length; from += 1_000) {
    await store.write((tx) => tx.insertInto('oauth_clients').values(rows.slice(from, from + 1_000)).execute()) // prettier-ignore
  }
}

for (const dialect of DIALECTS) {
  describe(`OAuth on ${dialect}`, () => {
    let source: StoreSource
    before(async () => {
      source = await storeSource(dialect)
    })
    after(() => source[Symbol.asyncDispose]())

    const opened = async () => {
      const rooms = await openRooms(source)
      // The provider uses the system's clock.
      const service: Service = onRooms(rooms)
      const ada = await someone(rooms, 'Ada')
      const call = callOf(rooms, asId(ada.id))
      const team = (await createTeam(rooms, call, { name: 'T' })).id
      const client = await registered(service)
      const gate = async (token: string) => {
        try {
          return (await rooms.authenticator.authenticateConnector(`Bearer ${token}`)).kind
        } catch {
          return 'refused'
        }
      }
      return { rooms, service, ada, call, team, client, gate }
    }

    test('an id with a null byte is an unknown client', async () => {
      const { rooms, service, client } = await opened()
      await using _rooms = rooms
      const ask = (clientId: string) => open(service, authorizePath(service, { ...client, clientId }, pkce().challenge))
      const [unknown, broken] = [await ask('nobody'), await ask('no\0body')]
      assert.deepEqual([broken.status, broken.status], [unknown.status, 400])
    })

    test('a code can be exchanged once, and a second exchange ends the tokens of the first', async () => {
      const { rooms, service, ada, call, team, client, gate } = await opened()
      await using _rooms = rooms
      const coded = await authorized(service, ada, client, { teamIds: [team] })
      const { access, refresh: token } = tokensIn(await exchange(service, coded))
      assert.equal(await gate(access), 'grant')
      assert.deepEqual(errorOf(await exchange(service, coded)), INVALID)
      assert.equal(await gate(access), 'refused')
      assert.deepEqual(errorOf(await refresh(service, client.clientId, token)), INVALID)
      assert.deepEqual(await listGrants(rooms, call), [])
      assert.deepEqual(await rooms.store.db.selectFrom('oauth_consents').select('id').execute(), [])
      await rooms.audit.flush()
      const row = await rooms.store.db
        .selectFrom('audit')
        .select(['via', 'detail'])
        .where('action', '=', 'endGrant')
        .executeTakeFirstOrThrow()
      const { changes, grant, target } = JSON.parse(row.detail ?? '{}')
      assert.deepEqual(
        [row.via, grant, target.kind, changes.reason.to],
        ['CONNECTOR', 'Test agent', 'grant', 'a code was used twice'],
      )
    })

    test('a code is bound to its client, its redirect URI, its verifier and its resource', async () => {
      const { rooms, service, ada, team, client } = await opened()
      await using _rooms = rooms
      const other = await registered(service)
      for (const wrong of [
        { client_id: other.clientId },
        { redirect_uri: 'http://127.0.0.1:33418/other' },
        { code_verifier: pkce().verifier },
        { resource: 'https://other.example/mcp' },
      ]) {
        const coded = await authorized(service, ada, client, { teamIds: [team] })
        const answer = await exchange(service, coded, wrong)
        assert.equal(answer.status, 400, `${JSON.stringify(wrong)}: ${answer.text}`)
        assert.equal(answer.json.access_token, undefined)
        if ('code_verifier' in wrong) assert.deepEqual(errorOf(answer), INVALID)
      }
      const coded = await authorized(service, ada, client, { teamIds: [team] })
      assert.deepEqual(errorOf(await exchange(service, coded, { code_verifier: '' })), [400, 'invalid_request'])
      await rooms.store.write((tx) => tx.deleteFrom('sessions').execute())
      assert.deepEqual(errorOf(await exchange(service, coded)), INVALID)
    })

    test('each use replaces a refresh token, whose reuse gets the same answer for some time, and later ends the grant', async () => {
      const { rooms, service, ada, call, team, client, gate } = await opened()
      await using _rooms = rooms
      const first = await connected(service, ada, client, { teamIds: [team] })
      const other = await connected(service, ada, client, { teamIds: [team] })
      const second = tokensIn(await refresh(service, client.clientId, first.refresh))
      assert.notEqual(second.refresh, first.refresh)
      assert.equal(tokensIn(await refresh(service, client.clientId, first.refresh)).refresh, second.refresh)
      assert.equal(await gate(second.access), 'grant')
      await endReplay(rooms)
      assert.deepEqual(errorOf(await refresh(service, client.clientId, first.refresh)), INVALID)
      assert.deepEqual(errorOf(await refresh(service, client.clientId, second.refresh)), INVALID)
      assert.deepEqual([await gate(first.access), await gate(second.access)], ['refused', 'refused'])
      // The same agent's other connection to this person continues.
      assert.equal(await gate(other.access), 'grant')
      tokensIn(await refresh(service, client.clientId, other.refresh))
      assert.equal((await listGrants(rooms, call)).length, 1)
    })

    test('a refresh is refused for another client, another resource, more scopes or an ended grant', async () => {
      const { rooms, service, ada, call, team, client, gate } = await opened()
      await using _rooms = rooms
      const other = await registered(service)
      const tokens = await connected(service, ada, client, { teamIds: [team], scopes: ['data:schema'] })
      assert.equal(tokens.scope, 'data:schema offline_access')
      const tried = (more: object, clientId = client.clientId) => refresh(service, clientId, tokens.refresh, more)
      assert.deepEqual(errorOf(await tried({}, other.clientId)), INVALID)
      assert.deepEqual(errorOf(await tried({ resource: 'https://other.example/mcp' })), [400, 'invalid_target'])
      assert.deepEqual(errorOf(await tried({ scope: 'data:schema data:read' })), [400, 'invalid_scope'])
      const next = tokensIn(await tried({ scope: 'data:schema' }))
      // The next refresh works although this agent did not request offline_access.
      const last = tokensIn(await refresh(service, client.clientId, next.refresh))
      const [grant] = await listGrants(rooms, call)
      await endGrant(rooms, call, asId<GrantId>(grant?.id ?? ''))
      assert.deepEqual(errorOf(await refresh(service, client.clientId, last.refresh)), INVALID)
      assert.equal(await gate(last.access), 'refused')
    })

    test('a used refresh token is deleted after a day', async () => {
      const { rooms, service, ada, team, client } = await opened()
      await using _rooms = rooms
      const first = await connected(service, ada, client, { teamIds: [team] })
      const second = tokensIn(await refresh(service, client.clientId, first.refresh))
      const count = async () => (await rooms.store.db.selectFrom('oauth_refresh_tokens').select('id').execute()).length
      assert.equal(await count(), 2)
      rooms.clock.at += 86_400_000 + 60_000
      tokensIn(await refresh(service, client.clientId, second.refresh))
      while ((await count()) > 1) await new Promise((resolve) => setImmediate(resolve))
    })

    test('expired refresh tokens are deleted in portions', async () => {
      const { rooms, service, ada, team, client } = await opened()
      await using _rooms = rooms
      const { store } = rooms
      const { refresh: token } = await connected(service, ada, client, { teamIds: [team] })
      const past = storedTime(store.dialect, 1_000)
      const row = { userId: asId<AccountId>(ada.id), clientId: client.clientId, scopes: '', createdAt: past }
      const all = Array.from({ length: 3_000 }, () => ({ ...row, id: newId(), token: newId(), expiresAt: past }))
      for (let from = 0; from < all.length; from += 1_000) {
        await store.write((tx) =>
          tx
            .insertInto('oauth_refresh_tokens')
            .values(all.slice(from, from + 1_000))
            .execute(),
        )
      }
      const count = async () => {
        const of = store.db.selectFrom('oauth_refresh_tokens').select((eb) => eb.fn.countAll().as('n'))
        return Number((await of.executeTakeFirstOrThrow()).n)
      }
      const most = await largestTurn(count, async () => {
        await refresh(service, client.clientId, token)
        await until('the deletion', async () => (await count()) === 2)
      })
      if (dialect === 'sqlite') assert.ok(most <= 2 * ROWS_A_PORTION, `${most} tokens in one turn`)
    })

    test('an agent may refresh a grant 60 times an hour', async () => {
      const { rooms, service, ada, team, client } = await opened()
      await using _rooms = rooms
      const used = await connected(service, ada, client, { teamIds: [team] })
      let { refresh: token } = used
      for (let n = 0; n < REFRESHES.limit; n++) {
        ;({ refresh: token } = tokensIn(await refresh(service, client.clientId, token)))
      }
      const refused = await refresh(service, client.clientId, token)
      assert.deepEqual([refused.status, refused.json.code, refused.json.retryAfter], [429, 'RATE_LIMITED', 3600])
      // Another grant has its own limit.
      const other = await connected(service, ada, client, { teamIds: [team] })
      tokensIn(await refresh(service, client.clientId, other.refresh))
      rooms.clock.at += REFRESHES.windowMs
      tokensIn(await refresh(service, client.clientId, token))
      // The first token of the day is still recognized as stolen.
      await endReplay(rooms)
      assert.deepEqual(errorOf(await refresh(service, client.clientId, used.refresh)), INVALID)
      assert.deepEqual((await listGrants(rooms, callOf(rooms, asId(ada.id)))).length, 1)
    })

    for (const how of ['by the owner', 'by the agent', 'with a new password', 'with the account'] as const) {
      test(`refresh tokens of a grant that ends ${how} are deleted in portions`, async () => {
        const { rooms, service, ada, team, client, gate } = await opened()
        await using _rooms = rooms
        const { store } = rooms
        const { access, refresh: token } = await connected(service, ada, client, { teamIds: [team] })
        const { referenceId } = await store.db
          .selectFrom('oauth_refresh_tokens')
          .select('referenceId')
          .executeTakeFirstOrThrow()
        const at = storedTime(store.dialect, rooms.now())
        const row = {
          userId: asId<AccountId>(ada.id),
          clientId: client.clientId,
          scopes: '',
          createdAt: at,
          referenceId,
        }
        const all = Array.from({ length: 3_000 }, () => ({ ...row, id: newId(), token: newId(), expiresAt: at }))
        for (let from = 0; from < all.length; from += 1_000) {
          await store.write((tx) =>
            tx
              .insertInto('oauth_refresh_tokens')
              .values(all.slice(from, from + 1_000))
              .execute(),
          )
        }
        const count = async () => {
          const of = store.db.selectFrom('oauth_refresh_tokens').select((eb) => eb.fn.countAll().as('n'))
          return Number((await of.executeTakeFirstOrThrow()).n)
        }
        const end = async () => {
          const call = callOf(rooms, asId<AccountId>(ada.id))
          switch (how) {
            case 'by the owner':
              return await endGrant(rooms, call, asId<GrantId>(referenceId ?? ''))
            case 'by the agent':
              return await form(service, 'revoke', { token, client_id: client.clientId })
            case 'with a new password': {
              const order = { currentPassword: PASSWORD, newPassword: `${PASSWORD}!` }
              return await auth(rooms, 'POST change-password', order, { cookie: ada.cookie })
            }
            case 'with the account':
              await store.write((tx) => tx.deleteFrom('teams').where('id', '=', asId<TeamId>(team)).execute())
              return await deleteAccount(rooms, call, { confirm: 'ada@example.test' })
          }
        }
        const most = await largestTurn(count, async () => {
          await end()
          assert.equal(await gate(access), 'refused')
          await until('the deletion', async () => (await count()) === 0)
        })
        if (dialect === 'sqlite') assert.ok(most <= 2 * ROWS_A_PORTION, `${most} tokens in one turn`)
      })
    }

    test('simultaneous refreshes with one token get the same tokens', async () => {
      const { rooms, service, ada, team, client, gate } = await opened()
      await using _rooms = rooms
      const tokens = await connected(service, ada, client, { teamIds: [team] })
      const all = await Promise.all([1, 2, 3, 4, 5].map(() => refresh(service, client.clientId, tokens.refresh)))
      const [first, ...others] = all.map(tokensIn)
      assert.ok(first)
      for (const each of others) assert.deepEqual(each, first)
      assert.equal(await gate(first.access), 'grant')
      tokensIn(await refresh(service, client.clientId, first.refresh))
      // With another scope, this is no repetition of the first request.
      const other = await refresh(service, client.clientId, tokens.refresh, { scope: 'data:schema' })
      assert.deepEqual(errorOf(other), INVALID)
    })

    test('an agent can revoke only its own tokens, and gets the same answer for tokens of others', async () => {
      const { rooms, service, ada, team, client, gate } = await opened()
      await using _rooms = rooms
      const other = await registered(service)
      const [one, two] = [
        await connected(service, ada, client, { teamIds: [team] }),
        await connected(service, ada, client, { teamIds: [team] }),
      ]
      const revoke = async (token: string, clientId: string) => {
        const { status, text } = await form(service, 'revoke', { token, client_id: clientId })
        assert.deepEqual([status, text], [200, ''])
      }
      for (const token of [one.refresh, one.access, 'nonsense', 'vitrine_rt_nonsense']) {
        await revoke(token, other.clientId)
      }
      assert.equal(await gate(one.access), 'grant')
      await revoke(one.refresh, client.clientId)
      assert.deepEqual([await gate(one.access), await gate(two.access)], ['refused', 'grant'])
      await revoke(two.access, client.clientId)
      assert.equal(await gate(two.access), 'refused')
      assert.deepEqual(errorOf(await refresh(service, client.clientId, two.refresh)), INVALID)
    })

    test('two tabs give two grants, and a choice by another account or without a session is refused', async () => {
      const { rooms, service, ada, call, team, client } = await opened()
      await using _rooms = rooms
      const bo = await someone(rooms, 'Bo')
      const query = await asked(service, ada, client, pkce().challenge)
      const both = await Promise.all([1, 2].map(() => decide(service, ada, query, { teamIds: [team] })))
      assert.deepEqual(
        both.map(({ status }) => status),
        [200, 200],
      )
      assert.notEqual(both[0]?.json.url, both[1]?.json.url)
      assert.equal((await listGrants(rooms, call)).length, 2)
      // The page was shown to Ada, but the browser now has Bo's session.
      const stale = await decide(service, { ...bo, id: ada.id }, query, { teamIds: [team] })
      assert.deepEqual([stale.status, stale.json.code], [409, 'CONFLICT'])
      // Bo may open the same link, but cannot grant access to Ada's team.
      const foreign = await decide(service, bo, query, { teamIds: [team] })
      assert.deepEqual([foreign.status, foreign.json.code], [400, 'INVALID_REQUEST'])
      const signedOut = await decide(service, { id: ada.id, cookie: 'vitrine.session_token=x' }, query, { teamIds: [team] }) // prettier-ignore
      assert.deepEqual([signedOut.status, signedOut.json.code], [401, 'UNAUTHENTICATED'])
      assert.equal((await listGrants(rooms, call)).length, 2)
    })

    test('OAuth works at the second request if the store failed at the first one', async () => {
      const { rooms, service, ada, team, client, gate } = await opened()
      await using _rooms = rooms
      const { db } = rooms.store
      await sql`alter table oauth_resources rename column identifier to gone`.execute(db)
      await assert.rejects(connected(service, ada, client, { teamIds: [team] }))
      await sql`alter table oauth_resources rename column gone to identifier`.execute(db)
      const { access } = await connected(service, ada, client, { teamIds: [team] })
      assert.equal(await gate(access), 'grant')
    })

    test('a client without a grant is deleted after a day', async () => {
      const { rooms, service, ada, team, client } = await opened()
      await using _rooms = rooms
      const unused = await registered(service)
      await connected(service, ada, client, { teamIds: [team] })
      rooms.clock.at += 86_400_000 + 60_000
      const next = await registered(service)
      const ids = async () => {
        const rows = await rooms.store.db.selectFrom('oauth_clients').select('clientId').execute()
        return new Set(rows.map((row) => row.clientId))
      }
      await until('the unused client is deleted', async () => !(await ids()).has(unused.clientId))
      assert.deepEqual(await ids(), new Set([client.clientId, next.clientId]))
    })

    test('unused clients are deleted once a minute, a few at a time', async () => {
      const { rooms, service, client } = await opened()
      await using _rooms = rooms
      const flood = floodOf(rooms, 9_000, rooms.now() - 2 * 86_400_000)
      await addClients(rooms, flood)
      // The client of opened() was registered a moment ago, so nothing is deleted yet.
      await registered(service)
      const count = async () => {
        const row = await rooms.store.db.selectFrom('oauth_clients').select((eb) => eb.fn.countAll().as('n')).executeTakeFirstOrThrow() // prettier-ignore
        return Number(row.n)
      }
      assert.equal(await count(), 9_002)
      rooms.clock.at += 60_000
      const most = await largestTurn(count, async () => {
        await registered(service)
        await until('the old clients are deleted', async () => (await count()) === 3)
      })
      if (dialect === 'sqlite') assert.ok(most <= 2 * CLIENTS_AT_A_TIME, `${most} clients in one turn`)
      assert.equal((await service.send('GET', authorizePath(service, client, pkce().challenge))).status, 302)
    })

    test('the redirect URIs of a client have at most 4 kB', async () => {
      const { rooms, service } = await opened()
      await using _rooms = rooms
      const uris = (count: number) =>
        Array.from({ length: count }, (_, n) => `https://a.example/${'x'.repeat(980)}${n}`)
      const send = (redirect_uris: readonly string[]) =>
        service.send('POST', '/auth/oauth2/register', { body: JSON.stringify({ redirect_uris }) })
      assert.equal((await send(uris(4))).status, 201)
      // A URI that occurs twice is stored once.
      assert.equal((await send([...uris(4), ...uris(4)])).status, 201)
      const refused = await send(uris(5))
      assert.deepEqual([refused.status, refused.json.error], [400, 'invalid_redirect_uri'])
    })

    test('a network address can register 30 clients a minute', async () => {
      const { rooms, service } = await opened()
      await using _rooms = rooms
      for (let n = 1; n < 30; n++) assert.equal((await register(service)).status, 201)
      const refused = await register(service)
      assert.deepEqual([refused.status, refused.json.code], [429, 'RATE_LIMITED'])
      rooms.clock.at += 60_000
      assert.equal((await register(service)).status, 201)
    })

    test('registrations and authorizations are counted per IPv6 network', async () => {
      const { rooms, service, client } = await opened()
      await using _rooms = rooms
      const from = (n: number) => ({ headers: { 'x-vitrine-client': `2001:db8:1:2::${n}` } })
      const spread = (path: (n: number) => Promise<{ readonly status: number }>, n: number) =>
        Promise.all(Array.from({ length: n }, (_, at) => path(at + 1)))
      const body = JSON.stringify({ redirect_uris: ['http://127.0.0.1/callback'] })
      const registrations = await spread((n) => service.send('POST', '/auth/oauth2/register', { ...from(n), body }), 31)
      assert.deepEqual(registrations.map(({ status }) => status).toSorted(), [...Array(30).fill(201), 429])
      const path = authorizePath(service, client, pkce().challenge)
      const starts = await spread((n) => service.send('GET', path, from(n)), 61)
      assert.deepEqual(starts.map(({ status }) => status).toSorted(), [...Array(60).fill(302), 429])
    })

    test('a flood of registrations from many networks deletes no client of the last hour', async () => {
      const { rooms, service, client } = await opened()
      await using _rooms = rooms
      await addClients(rooms, floodOf(rooms, 9_999, rooms.now() + 1))
      const ids = async () =>
        new Set(
          (await rooms.store.db.selectFrom('oauth_clients').select('clientId').execute()).map((row) => row.clientId),
        )
      const refused = await register(service)
      assert.deepEqual([refused.status, refused.json.code, refused.json.retryAfter], [503, 'OVERLOADED', 60])
      assert.equal((await ids()).size, 10_000)
      rooms.clock.at += 3_600_000 + 1
      const next = await registered(service)
      // The oldest client was deleted to make space for the new one.
      await until('the oldest client is deleted', async () => (await ids()).size <= 10_000)
      const left = await ids()
      assert.deepEqual([left.size, left.has(next.clientId), left.has(client.clientId)], [10_000, true, false])
    })

    test('deleting an account ends its tokens', async () => {
      const { rooms, service, ada, team, client, gate } = await opened()
      await using _rooms = rooms
      const { access, refresh: token } = await connected(service, ada, client, { teamIds: [team] })
      await rooms.store.write((tx) => tx.deleteFrom('accounts').where('id', '=', asId<AccountId>(ada.id)).execute())
      assert.equal(await gate(access), 'refused')
      assert.deepEqual(errorOf(await refresh(service, client.clientId, token)), INVALID)
      assert.deepEqual(await rooms.store.db.selectFrom('oauth_refresh_tokens').select('id').execute(), [])
    })
  })
}
