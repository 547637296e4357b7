import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { SignJWT, exportJWK, generateKeyPair } from 'jose'
import { newId, type GrantId, type TeamId } from '../ids.ts'
import { DIALECTS, storeSource, type StoreSource } from '../../test/support/stores.ts'
import { callOf, codeOf, openRooms, someone, type Rooms } from '../../test/support/people.ts'
import { createKey } from './api-keys.ts'
import { authenticator } from './authenticate.ts'
import type { Call } from './caller.ts'
import { connectorResources } from './oauth-access-tokens.ts'
import type { ConnectorGrantTable } from '../store/tables.ts'
import { storedTime } from '../store/better-auth-times.ts'

const ORIGIN = 'http://127.0.0.1:3000'
const CLIENT = 'https://agent.example/client.json'
const bearer = (token: string) => `Bearer ${token}`

/** Adds a signing key, and returns a function that signs with it. */
async function signerOf({ store }: Rooms, id = 'own') {
  const own = await generateKeyPair('EdDSA', { extractable: true })
  const createdAt = storedTime(store.dialect, Date.now())
  const publicKey = JSON.stringify(await exportJWK(own.publicKey))
  const row = { id, publicKey, privateKey: '', createdAt, expiresAt: null, alg: 'EdDSA', crv: 'Ed25519' }
  await store.write((tx) => tx.insertInto('signing_keys').values(row).execute())
  return (claims: object, header: object = {}) =>
    new SignJWT({ ...claims })
      .setProtectedHeader({ alg: 'EdDSA', kid: id, typ: 'at+jwt', ...header })
      .sign(own.privateKey)
}

async function grantOf(rooms: Rooms, { caller }: Call, more: Partial<ConnectorGrantTable> = {}): Promise<GrantId> {
  const id = newId<GrantId>()
  const row = {
    id,
    account_id: caller.accountId,
    client_id: CLIENT,
    client_name: 'Agent',
    client_host: 'agent.example',
    scopes: '["data:schema","data:read"]',
    team_ids: null,
    datasource_ids: null,
    ended_team_ids: '[]',
    created_at: new Date(rooms.now()).toISOString(),
    expires_at: null,
    last_used_at: null,
    revoked_at: null,
  }
  await rooms.store.write((tx) =>
    tx
      .insertInto('connector_grants')
      .values({ ...row, ...more })
      .execute(),
  )
  return id
}

const change = (rooms: Rooms, id: GrantId, set: Partial<ConnectorGrantTable>) =>
  rooms.store.write((tx) => tx.updateTable('connector_grants').set(set).where('id', '=', id).execute())

for (const dialect of DIALECTS) {
  describe(`tokens of agents on ${dialect}`, () => {
    let source: StoreSource
    before(async () => {
      source = await storeSource(dialect)
    })
    after(() => source[Symbol.asyncDispose]())

    const opened = async () => {
      const rooms = await openRooms(source)
      const call = await someone(rooms, 'ada@example.test')
      const sign = await signerOf(rooms)
      const gid = await grantOf(rooms, call)
      const seconds = Math.floor(rooms.now() / 1000)
      const claims = {
        iss: ORIGIN,
        aud: `${ORIGIN}/mcp`,
        sub: call.caller.accountId,
        client_id: CLIENT,
        gid,
        scope: 'data:schema data:read offline_access',
        iat: seconds,
        exp: seconds + 600,
      }
      // The authenticator of openRooms() uses the system's clock.
      const gate = authenticator(rooms)
      return { rooms, gate, call, sign, gid, claims }
    }

    test('the connector accepts an API key and a token of a grant, but REST accepts no token of a grant', async () => {
      const { rooms, gate, call, sign, gid, claims } = await opened()
      await using _rooms = rooms
      const token = await sign(claims)
      const caller = await gate.authenticateConnector(bearer(token))
      assert.deepEqual(caller, {
        kind: 'grant',
        accountId: call.caller.accountId,
        name: 'ada',
        grantId: gid,
        clientId: CLIENT,
        clientName: 'Agent',
        scopes: new Set(['data:schema', 'data:read']),
        teamIds: null,
        datasourceIds: null,
        endedTeamIds: new Set(),
        expiresAt: null,
      })
      assert.equal(await gate.again(caller), caller)
      assert.equal(await codeOf(gate.authenticate(bearer(token))), 'UNAUTHENTICATED')
      const { key } = await createKey(rooms, call, { name: 'CI', scopes: ['profile'] })
      assert.equal((await gate.authenticateConnector(bearer(key))).kind, 'key')
    })

    test('the connector on loopback accepts a token for any of its names, but no token with two audiences', async () => {
      const { rooms, gate, sign, claims } = await opened()
      await using _rooms = rooms
      const [canonical, ...others] = connectorResources(ORIGIN)
      assert.deepEqual([canonical, ...others], [`${ORIGIN}/mcp`, 'http://localhost:3000/mcp', 'http://[::1]:3000/mcp'])
      assert.deepEqual(connectorResources('https://data.example'), ['https://data.example/mcp'])
      for (const aud of others) {
        await gate.authenticateConnector(bearer(await sign({ ...claims, aud })))
      }
      const many = bearer(await sign({ ...claims, aud: [canonical, 'https://other.example/mcp'] }))
      assert.equal(await codeOf(gate.authenticateConnector(many)), 'UNAUTHENTICATED')
    })

    test('a token with other claims, of another type, from another signer or of a session is refused', async () => {
      const { rooms, gate, sign, claims } = await opened()
      await using _rooms = rooms
      const codeFor = (token: string) => codeOf(gate.authenticateConnector(bearer(token)))
      const other = await someone(rooms, 'bo@example.test')
      const wrong = [
        { aud: 'vitrine:rest' },
        { aud: `${ORIGIN}/mcp/` },
        { aud: 'http://127.0.0.1:3001/mcp' },
        { aud: undefined },
        { iss: 'vitrine' },
        { iss: `${ORIGIN}/` },
        { iss: undefined },
        { sub: other.caller.accountId },
        { client_id: 'https://other.example/client.json' },
        { client_id: undefined },
        { gid: newId() },
        { gid: undefined },
        { gid: '../x' },
        { gid: await grantOf(rooms, other) },
        { scope: undefined },
        { exp: 1 },
        { exp: undefined },
      ]
      for (const more of wrong) {
        assert.equal(await codeFor(await sign({ ...claims, ...more })), 'UNAUTHENTICATED', JSON.stringify(more))
      }
      for (const typ of ['JWT', undefined, 'at+jwt2', 'logout+jwt']) {
        assert.equal(await codeFor(await sign(claims, { typ })), 'UNAUTHENTICATED', typ)
      }
      assert.equal(await codeFor(await sign(claims, { kid: 'no-such' })), 'UNAUTHENTICATED')
      const [head = '', body = '', signature = ''] = (await sign(claims)).split('.')
      const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
      const edited = part({ ...claims, scope: `${claims.scope} profile` })
      const none = part({ alg: 'none', typ: 'at+jwt', kid: 'own' })
      for (const forged of [`${head}.${edited}.${signature}`, `${none}.${body}.`, `${head}.${body}.`, 'a.b.c', '']) {
        assert.equal(await codeFor(forged), 'UNAUTHENTICATED', forged)
      }
      assert.ok(other.caller.kind === 'session')
      const { iat, exp } = claims
      const session = { iss: 'vitrine', aud: 'vitrine:rest', typ: 'access', sid: other.caller.sessionId, iat, exp }
      const token = await sign({ ...session, sub: other.caller.accountId })
      await gate.authenticate(bearer(token))
      assert.equal(await codeFor(token), 'UNAUTHENTICATED')
    })

    test('if a grant is ended, expires or is narrowed, this affects the next call with the same token', async () => {
      const { rooms, gate, call, sign, gid, claims } = await opened()
      await using _rooms = rooms
      const token = bearer(await sign(claims))
      const caller = await gate.authenticateConnector(token)
      const teamId = newId<TeamId>()
      await change(rooms, gid, { scopes: '["data:schema"]', team_ids: JSON.stringify([teamId]) })
      const narrowed = await gate.authenticateConnector(token)
      assert.deepEqual([narrowed.scopes, narrowed.teamIds], [new Set(['data:schema']), new Set([teamId])])
      assert.deepEqual(await gate.again(caller), narrowed)
      await change(rooms, gid, { expires_at: new Date(rooms.clock.at + 1000).toISOString() })
      await gate.authenticateConnector(token)
      rooms.clock.at += 1000
      assert.equal(await codeOf(gate.authenticateConnector(token)), 'UNAUTHENTICATED')
      assert.equal(await codeOf(gate.again(caller)), 'UNAUTHENTICATED')
      await change(rooms, gid, { expires_at: null, revoked_at: new Date(rooms.clock.at).toISOString() })
      assert.equal(await codeOf(gate.authenticateConnector(token)), 'UNAUTHENTICATED')
      await change(rooms, gid, { revoked_at: null })
      await gate.authenticateConnector(token)
      await rooms.store.write((tx) => tx.deleteFrom('accounts').where('id', '=', call.caller.accountId).execute())
      assert.equal(await codeOf(gate.authenticateConnector(token)), 'UNAUTHENTICATED')
    })

    test('a call has only the scopes that both its token and its grant have', async () => {
      const { rooms, gate, sign, claims } = await opened()
      await using _rooms = rooms
      const scopesOf = async (scope: string) => {
        const caller = await gate.authenticateConnector(bearer(await sign({ ...claims, scope })))
        const again = await gate.again(caller)
        assert.deepEqual(again, caller)
        return [...caller.scopes]
      }
      assert.deepEqual(await scopesOf('data:schema'), ['data:schema'])
      assert.deepEqual(await scopesOf('profile data:read'), ['data:read'])
      assert.deepEqual(await scopesOf(''), [])
    })

    test('the last use of a grant is stored, and its audit rows contain the grant and the agent’s name', async () => {
      const { rooms, gate, call, sign, gid, claims } = await opened()
      await using _rooms = rooms
      const caller = await gate.authenticateConnector(bearer(await sign(claims)))
      const teamId = newId<TeamId>()
      rooms.audit.record(
        { ...callOf(rooms, call.caller.accountId), caller, action: 'runQuery', via: 'CONNECTOR', client: 'agent/2.1' },
        { teamId, outcome: 'ANSWERED' },
      )
      const { items } = await rooms.audit.page(teamId, { limit: 5 })
      assert.deepEqual(
        items.map(({ actor, grantName, keyName, via }) => ({ actor, grantName, keyName, via })),
        [
          {
            actor: { accountId: call.caller.accountId, name: 'ada', grantId: gid, client: 'agent/2.1' },
            grantName: 'Agent',
            keyName: undefined,
            via: 'CONNECTOR',
          },
        ],
      )
      const usedAt = async () =>
        (
          await rooms.store.db
            .selectFrom('connector_grants')
            .select('last_used_at')
            .where('id', '=', gid)
            .executeTakeFirstOrThrow()
        ).last_used_at
      // The write runs in the background.
      while ((await usedAt()) === null) await new Promise((resolve) => setImmediate(resolve))
      assert.equal(await usedAt(), new Date(rooms.clock.at).toISOString())
    })
  })
}
