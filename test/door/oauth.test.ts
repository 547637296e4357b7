// Tests OAuth over HTTP, as agents and browsers use it: discovery, registration, authorization, the consent page,
// tokens at /mcp, and what ends them.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { Agent } from '../support/agent.ts'
import { PASSWORD, startApp, type Person, type TestApp } from '../support/app.ts'
import {
  asked,
  authorized,
  authorizePath,
  connected,
  decide,
  exchange,
  form,
  locationOf,
  open,
  overHttp,
  pkce,
  PROXY,
  REDIRECT,
  refresh,
  register,
  registered,
  tokensIn,
  type Answer,
  type Client,
  type Params,
  type Service,
} from '../support/oauth.ts'

const errorOf = ({ status, json }: Answer) => [status, json.error]

describe('OAuth', () => {
  let app: TestApp
  let service: Service
  let ada: Person
  let team: string
  let client: Client

  before(async () => {
    app = await startApp({ env: PROXY })
    service = overHttp(app)
    ada = await app.person('Ada')
    team = await app.team(ada, 'Alpha')
    client = await registered(service)
  })
  after(() => app[Symbol.asyncDispose]())

  const connect = (more: object = {}, params: Params = {}, person = ada) =>
    connected(service, person, client, { teamIds: [team], ...more }, params)
  const callTool = (token: string | undefined, name = 'list_teams') => new Agent(app, token).call('modern', name)
  const statusAt = async (token: string) => (await callTool(token)).status

  test('the OAuth discovery documents name the connector and this service, and pages of every site may read them', async () => {
    const origin = app.url
    for (const path of ['/.well-known/oauth-protected-resource', '/.well-known/oauth-protected-resource/mcp']) {
      const { status, headers, json } = await service.send('GET', path)
      assert.deepEqual([status, headers['access-control-allow-origin']], [200, '*'])
      assert.deepEqual(json, {
        resource: `${origin}/mcp`,
        authorization_servers: [origin],
        scopes_supported: ['profile', 'data:schema', 'data:read'],
        bearer_methods_supported: ['header'],
        resource_name: 'Vitrine',
      })
    }
    const { json, headers } = await service.send('GET', '/.well-known/oauth-authorization-server')
    assert.equal(headers['access-control-allow-origin'], '*')
    assert.equal(json.issuer, origin)
    assert.equal(json.registration_endpoint, `${origin}/auth/oauth2/register`)
    assert.deepEqual(json.code_challenge_methods_supported, ['S256'])
    assert.deepEqual(json.token_endpoint_auth_methods_supported, ['none'])
    assert.deepEqual(json.grant_types_supported, ['authorization_code', 'refresh_token'])
    assert.equal(json.authorization_response_iss_parameter_supported, true)
    assert.equal(json.client_id_metadata_document_supported, true)
    for (const path of ['/.well-known/oauth-authorization-server', '/auth/oauth2/token', '/auth/oauth2/register']) {
      const preflight = await service.send('OPTIONS', path, { headers: { origin: 'https://inspector.example' } })
      assert.deepEqual([preflight.status, preflight.headers['access-control-allow-origin']], [204, '*'])
    }
    // These answers depend on a person's cookie, so no page of another site may read them.
    for (const path of ['/auth/consent', '/auth/oauth2/authorize']) {
      const { headers: own } = await service.send('GET', path, { headers: { origin: 'https://inspector.example' } })
      assert.equal(own['access-control-allow-origin'], undefined)
    }
  })

  test('openapi.json lists every OAuth route, with the fields of its documents', async () => {
    const { paths } = (await service.send('GET', '/openapi.json')).json
    const fields = (path: string) =>
      Object.keys(paths[path].get.responses[200].content['application/json'].schema.properties)
    for (const path of Object.keys(paths).filter((each) => each.startsWith('/.well-known/'))) {
      assert.deepEqual(Object.keys((await service.send('GET', path)).json), fields(path), path)
    }
    const server = (await service.send('GET', '/.well-known/oauth-authorization-server')).json
    for (const [name, url] of Object.entries<string>(server).filter(([each]) => each.endsWith('_endpoint'))) {
      const method = name === 'authorization_endpoint' ? 'get' : 'post'
      assert.ok(paths[new URL(url).pathname]?.[method], name)
    }
    const { json } = await register(service)
    const declared = paths['/auth/oauth2/register'].post.responses[201].content['application/json'].schema.properties
    assert.deepEqual(Object.keys(json), Object.keys(declared))
    const tokens = paths['/auth/oauth2/token'].post.responses[200].content['application/json'].schema.properties
    assert.deepEqual(Object.keys(tokens), ['access_token', 'token_type', 'expires_in', 'refresh_token', 'scope'])
  })

  test('on loopback, the discovery documents use the address of the request', async () => {
    const { port } = new URL(app.url)
    const { json } = await service.send('GET', `http://localhost:${port}/.well-known/oauth-protected-resource/mcp`)
    assert.deepEqual([json.resource, json.authorization_servers], [`http://localhost:${port}/mcp`, [app.url]])
    const { access } = await connect({}, { resource: json.resource })
    assert.equal(await statusAt(access), 200)
  })

  test('over plain http on another host, discovery returns nothing, so agents cannot connect', async () => {
    await using other = await startApp({ env: { VITRINE_PUBLIC_URL: 'http://vitrine.example' } })
    const at = overHttp(other)
    for (const path of ['/.well-known/oauth-protected-resource', '/.well-known/oauth-authorization-server']) {
      assert.deepEqual((await at.send('GET', path)).json.code, 'NOT_FOUND')
    }
    assert.equal((await register(at)).status, 404)
  })

  describe('registration', () => {
    const cursor = 'cursor://anysphere.cursor-mcp/oauth/callback'
    const ofCursor = [cursor, 'https://www.cursor.com/agents/mcp/oauth/callback', 'http://localhost:8787/callback']
    const taken: [string, object, readonly string[]][] = [
      ['no application_type and loopback', { redirect_uris: ['http://127.0.0.1:1/cb'] }, ['http://127.0.0.1:1/cb']],
      [
        'web and localhost',
        { redirect_uris: ['http://localhost/cb'], application_type: 'web' },
        ['http://localhost/cb'],
      ],
      ['IPv6 loopback', { redirect_uris: ['http://[::1]:9/cb'] }, ['http://[::1]:9/cb']],
      ['the three redirect URIs of Cursor', { redirect_uris: ofCursor, application_type: 'web' }, ofCursor],
      ['an unknown scheme in addition to a known one', { redirect_uris: ['weird://x', REDIRECT] }, [REDIRECT]],
      ['a client that requests a secret', { token_endpoint_auth_method: 'client_secret_post' }, [REDIRECT]],
      [
        'other grant types in addition to a code, which the answer leaves out',
        { grant_types: ['authorization_code', 'client_credentials', 'password'] },
        [REDIRECT],
      ],
      ['other fields', { jwks_uri: 'http://169.254.169.254/', skip_consent: true, scope: 'admin' }, [REDIRECT]],
    ]
    for (const [name, metadata, uris] of taken) {
      test(`OAuth registration accepts ${name}`, async () => {
        const { status, json } = await register(service, metadata)
        assert.equal(status, 201)
        assert.deepEqual(json.redirect_uris, uris)
        assert.equal(json.token_endpoint_auth_method, 'none')
        assert.equal(json.client_secret, undefined)
        assert.deepEqual(json.grant_types, ['authorization_code', 'refresh_token'])
      })
    }

    const uris = [
      'javascript:alert(1)',
      'JavaScript:alert(1)',
      'data:text/html,x',
      'vbscript:x',
      'file:///etc/passwd',
      'http://agent.example/cb',
      'http://127.0.0.1.agent.example/cb',
      'http://127.0.0.1@agent.example/cb',
      'https://agent.example/cb#x',
      'https://user:pw@agent.example/cb',
      'https://agent.example/c\nb',
      'weird://x',
      'cursor://anysphere.cursor-mcp/other',
      '',
      `https://agent.example/${'x'.repeat(2_000)}`,
    ]
    for (const uri of uris) {
      test(`OAuth registration refuses the redirect URI ${JSON.stringify(uri.slice(0, 60))}`, async () => {
        assert.deepEqual(errorOf(await register(service, { redirect_uris: [uri] })), [400, 'invalid_redirect_uri'])
        if (!/^(weird|cursor):/.test(uri)) {
          const beside = await register(service, { redirect_uris: [REDIRECT, uri] })
          assert.deepEqual(errorOf(beside), [400, 'invalid_redirect_uri'])
        }
      })
    }

    const wrong: [string, object][] = [
      ['client_credentials', { grant_types: ['client_credentials'] }],
      ['implicit', { grant_types: ['implicit'], response_types: ['token'] }],
      ['no redirect URI', { redirect_uris: [] }],
      ['redirect URIs that are not a list', { redirect_uris: REDIRECT }],
      ['21 redirect URIs', { redirect_uris: Array.from({ length: 21 }, (_, n) => `${REDIRECT}/${n}`) }],
      ['a name that is not a string', { client_name: { a: 1 } }],
    ]
    for (const [name, metadata] of wrong) {
      test(`OAuth registration refuses ${name}`, async () => {
        assert.deepEqual(errorOf(await register(service, metadata)), [400, 'invalid_client_metadata'])
      })
    }
  })

  describe('an authorization request', () => {
    const challenge = pkce().challenge
    const ask = (more: Params, person: Person | undefined = ada) =>
      open(service, authorizePath(service, client, challenge, more), person)

    const back: [string, Params, string][] = [
      ['without PKCE', { code_challenge: null, code_challenge_method: null }, 'invalid_request'],
      ['with plain PKCE', { code_challenge_method: 'plain' }, 'invalid_request'],
      ['without a PKCE method', { code_challenge_method: null }, 'invalid_request'],
      ['for an unknown scope', { scope: 'data:read admin' }, 'invalid_scope'],
      ['for the resource of another service', { resource: 'https://other.example/mcp' }, 'invalid_target'],
      ['for REST', { resource: 'vitrine:rest' }, 'invalid_target'],
      ['for two resources', { resource: ['', '/'].map((end) => `http://localhost:1/mcp${end}`) }, 'invalid_target'],
      ['for a token instead of a code', { response_type: 'token' }, 'unsupported_response_type'],
      ['with a request object', { request: 'eyJhbGciOiJub25lIn0.e30.' }, 'request_not_supported'],
      ['with a request_uri', { request_uri: 'http://169.254.169.254/' }, 'request_uri_not_supported'],
      ['with prompt=none', { prompt: 'none' }, 'consent_required'],
    ]
    for (const [name, more, error] of back) {
      test(`an authorization request ${name} returns to the agent with an error, its state and the name of the service`, async () => {
        const location = locationOf(await ask(more))
        assert.equal(location.origin + location.pathname, REDIRECT)
        // If a flow returns a token, errors are in the fragment.
        const params = new URLSearchParams(location.hash === '' ? location.search : location.hash.slice(1))
        assert.deepEqual([params.get('error'), params.get('state'), params.get('iss')], [error, 'state-1', app.url])
        assert.equal(params.get('code'), null)
      })
    }

    const nowhere: [string, Params][] = [
      ['an unknown client', { client_id: 'nobody' }],
      ['no client', { client_id: null }],
      ['two clients', { client_id: ['a', 'b'] }],
      ['a redirect URI of another host', { redirect_uri: 'https://evil.example/cb' }],
      ['a longer redirect URI', { redirect_uri: `${REDIRECT}/more` }],
      ['another host of loopback', { redirect_uri: REDIRECT.replace('127.0.0.1', 'localhost') }],
      ['a redirect URI with a user', { redirect_uri: 'http://127.0.0.1:33418@evil.example/callback' }],
      ['a redirect URI with a fragment', { redirect_uri: `${REDIRECT}#` }],
      ['a redirect URI that is a script', { redirect_uri: 'javascript:alert(1)' }],
      ['no redirect URI', { redirect_uri: null }],
      ['two redirect URIs', { redirect_uri: [REDIRECT, 'https://evil.example/cb'] }],
    ]
    for (const [name, more] of nowhere) {
      test(`an authorization request with ${name} does not redirect the browser`, async () => {
        const { status, headers, text } = await ask(more)
        assert.deepEqual([status, headers['location']], [400, undefined])
        assert.match(text, /<h1>This agent cannot be connected<\/h1>/)
        assert.ok(!text.includes('evil.example'))
      })
    }

    test('an agent on the person’s computer may return to another port than the registered one', async () => {
      const location = locationOf(await ask({ redirect_uri: REDIRECT.replace('33418', '50000') }))
      assert.equal(location.pathname, '/auth/consent')
    })

    test('an authorization request without a resource and a scope is for the connector, and requests all scopes', async () => {
      const { access, scope } = await connect({}, { resource: null, scope: null })
      const claims = JSON.parse(Buffer.from(access.split('.')[1] ?? '', 'base64url').toString())
      assert.deepEqual([claims.aud, claims.iss], [`${app.url}/mcp`, app.url])
      assert.equal(scope, 'profile data:schema data:read offline_access')
      assert.equal(await statusAt(access), 200)
    })

    test('each authorization request shows the consent page, even if the person agreed before', async () => {
      await connect()
      for (const person of [ada, undefined]) {
        assert.equal(locationOf(await ask({}, person)).pathname, '/auth/consent')
      }
    })
  })

  describe('the consent page', () => {
    test('the consent page cannot be framed, loads nothing, and shows names as text', async () => {
      const name = '"><script>alert(1)</script><img src=x onerror=alert(1)>'
      const evil = await registered(service, { client_name: name, redirect_uris: ['https://agent.example/cb?a="><b>'] })
      const bo = await app.person('Bo <b>&"\'', 'bo@example.test')
      const own = await app.team(bo, 'Team <i>')
      const query = await asked(service, bo, evil, pkce().challenge)
      const { status, headers, text } = await open(service, `/auth/consent?${query}`, bo)
      assert.equal(status, 200)
      assert.equal(headers['x-frame-options'], 'DENY')
      assert.match(String(headers['content-security-policy']), /^default-src 'none'; script-src 'sha256-[^']+'; style-src 'sha256-[^']+'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'$/) // prettier-ignore
      assert.equal(headers['cache-control'], 'no-store')
      assert.equal(headers['referrer-policy'], 'no-referrer')
      assert.ok(!/<script>alert|<img|<b>|<i>/.test(text), text)
      assert.match(text, /<h1>agent\.example<\/h1>/)
      assert.match(
        text,
        /It calls itself <em>&quot;&gt;&lt;script&gt;.*<\/em>\. It is not published anywhere: everybody can choose this name\./,
      )
      assert.match(text, /Team &lt;i&gt;/)
      assert.ok(text.includes(`value="${own}"`) && !text.includes(team))
      for (const sentence of ['See your name', 'See the names of the teams', 'Run read-only queries']) {
        assert.ok(text.includes(sentence), sentence)
      }
    })

    test('the consent page shows only the scopes that the agent requested', async () => {
      const query = await asked(service, ada, client, pkce().challenge, { scope: 'data:schema' })
      const { text } = await open(service, `/auth/consent?${query}`, ada)
      assert.deepEqual(
        [...text.matchAll(/name="scope" value="([\w:]+)"/g)].map(([, scope]) => scope),
        ['data:schema'],
      )
      const more = await decide(service, ada, query, { teamIds: [team], scopes: ['data:schema', 'data:read'] })
      assert.deepEqual([more.status, more.json.code], [400, 'INVALID_REQUEST'])
    })

    test('the consent page asks to sign in first, with the second factor, and then shows the consent', async () => {
      const query = locationOf(await open(service, authorizePath(service, client, pkce().challenge))).search
      const { status, text, headers } = await open(service, `/auth/consent${query}`)
      assert.deepEqual([status, headers['x-frame-options']], [200, 'DENY'])
      assert.match(text, /<form id="password">.*<form id="code" hidden>/s)
      assert.ok(!text.includes('Alpha'))
      const [, next = ''] = /href="\/app\/sign-in\?next=([^"]+)"/.exec(text) ?? []
      assert.equal(decodeURIComponent(next), `/auth/consent${query}`)
      const { text: after } = await open(service, `/auth/consent${query}`, ada)
      assert.match(after, /Alpha/)
      const decided = await decide(service, ada, query.slice(1), { teamIds: [team] })
      assert.ok(new URL(decided.json.url).searchParams.get('code'))
    })

    test('if the person refuses consent, the agent gets access_denied', async () => {
      const query = await asked(service, ada, client, pkce().challenge)
      const { json } = await decide(service, ada, query, null)
      const { origin, pathname, searchParams: params } = new URL(json.url)
      assert.equal(origin + pathname, REDIRECT)
      assert.deepEqual([params.get('error'), params.get('state'), params.get('iss'), params.get('code')], ['access_denied', 'state-1', app.url, null]) // prettier-ignore
    })

    test('a consent is accepted only from the consent page itself', async () => {
      const query = await asked(service, ada, client, pkce().challenge)
      const choice = { teamIds: [team] }
      const before = await ada.must('GET', '/users/me/grants')
      for (const headers of [
        {},
        { origin: 'null' },
        { origin: 'https://evil.example' },
        { origin: app.url.replace(/:\d+$/, ':1') },
      ]) {
        const { status, json } = await decide(service, ada, query, choice, headers)
        assert.deepEqual([status, json.code], [403, 'SIGN_IN_REFUSED'], JSON.stringify(headers))
      }
      // A form on another page cannot send JSON.
      const headers = { 'content-type': 'text/plain', cookie: ada.cookie, origin: app.url }
      assert.equal((await service.send('POST', '/auth/consent', { headers, body: '{}' })).status, 415)
      assert.deepEqual(await ada.must('GET', '/users/me/grants'), before)
    })

    test('a consent is refused if the query of the request was changed, or without a session', async () => {
      const query = await asked(service, ada, client, pkce().challenge, { scope: 'data:schema' })
      const changed = (name: string, value: string) => {
        const params = new URLSearchParams(query)
        params.set(name, value)
        return params.toString()
      }
      const other = await registered(service, { redirect_uris: ['https://agent.example/cb'] })
      const queries = [
        changed('scope', 'data:schema data:read'),
        changed('redirect_uri', 'https://agent.example/cb'),
        changed('client_id', other.clientId),
        changed('code_challenge', pkce().challenge),
        changed('resource', 'https://other.example/mcp'),
        changed('exp', '9999999999'),
        changed('sig', 'x'),
        `${query}&sig=${new URLSearchParams(query).get('sig')}`,
        query.replace(/&sig=[^&]*/, ''),
        '',
        'a=b',
      ]
      for (const each of queries) {
        const page = await open(service, `/auth/consent?${each}`, ada)
        assert.equal(page.status, 400, each)
        const { status, json } = await decide(service, ada, each, { teamIds: [team] })
        assert.deepEqual([status, json.code], [400, 'INVALID_REQUEST'], each)
      }
    })

    test('a consent is refused without a scope, a team or a datasource, or for something that the person cannot access', async () => {
      const query = await asked(service, ada, client, pkce().challenge)
      const otherTeam = await app.team(await app.person('Cy'))
      const wrong = [
        { scopes: [] },
        { scopes: ['data:read', 'admin'] },
        { teamIds: [] },
        { teamIds: [otherTeam] },
        { datasourceIds: [] },
        { datasourceIds: ['no-such'] },
        { days: 0 },
        { days: 367 },
        { more: true },
      ]
      for (const each of wrong) {
        const { status, json } = await decide(service, ada, query, { teamIds: [team], ...each })
        assert.deepEqual([status, json.code], [400, 'INVALID_REQUEST'], JSON.stringify(each))
      }
    })
  })

  describe('at /mcp', () => {
    const datasource = async (owner: Person, teamId: string, name: string) => {
      const shop = { name, type: 'POSTGRES', connectionMode: 'DIRECT', host: '127.0.0.1', port: 1, database: 'shop' }
      const login = { username: 'reader', password: 'pw', sslMode: 'disable' }
      const access = { accessMode: 'ROLE_BASED', minRole: 'MEMBER' }
      return (await owner.must('POST', `/teams/${teamId}/datasources`, { ...shop, ...login, ...access })).id
    }

    test("an agent's token gives access only to the ticked scopes, teams and datasources", async () => {
      const dan = await app.person('Dan')
      const [one, two] = [await app.team(dan, 'One'), await app.team(dan, 'Two')]
      const [shown, hidden] = [await datasource(dan, one, 'shown'), await datasource(dan, one, 'hidden')]
      await datasource(dan, two, 'elsewhere')
      const choice = { scopes: ['data:schema'], teamIds: [one], datasourceIds: [shown] }
      const tokens = await connected(service, dan, client, choice)
      assert.equal(tokens.scope, 'data:schema offline_access')
      const agent = new Agent(app, tokens.access)
      assert.deepEqual(
        (await agent.tool('list_teams')).teams.map(({ id }: { id: string }) => id),
        [one],
      )
      const listed = (await agent.tool('list_datasources')).datasources
      assert.deepEqual(
        listed.map(({ id }: { id: string }) => id),
        [shown],
      )
      const reply = await agent.call('modern', 'describe_datasource', { teamId: one, datasourceId: hidden })
      assert.equal(reply.json.result.structuredContent.code, 'NOT_FOUND')

      // `datasourceIds` is null, so the grant includes datasources that are added later.
      const all = new Agent(app, (await connected(service, dan, client, { teamIds: [one] })).access)
      const later = await datasource(dan, one, 'later')
      const ids = (await all.tool('list_datasources')).datasources.map(({ id }: { id: string }) => id)
      assert.deepEqual(new Set(ids), new Set([shown, hidden, later]))
    })

    test('a call without the needed scope gets a 403 that names the scope to request', async () => {
      const { access } = await connect({ scopes: ['data:schema'] })
      for (const era of ['modern', 'legacy'] as const) {
        const { status, headers } = await new Agent(app, access).call(era, 'whoami')
        assert.equal(status, 403)
        const challenge = headers.get('www-authenticate') ?? ''
        assert.match(challenge, /^Bearer error="insufficient_scope"/)
        assert.match(challenge, /scope="profile"/)
      }
    })

    test('/mcp accepts only its own tokens, and REST accepts no token of an agent', async () => {
      const { access, refresh: token } = await connect()
      const [head = '', body = '', signature = ''] = access.split('.')
      const claims = JSON.parse(Buffer.from(body, 'base64url').toString())
      const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
      const forged = [
        ada.jwt,
        token,
        `${head}.${part({ ...claims, scope: 'profile' })}.${signature}`,
        `${head}.${part({ ...claims, exp: claims.exp + 9e5 })}.${signature}`,
        `${part({ alg: 'none', typ: 'at+jwt' })}.${body}.`,
        `${head}.${body}.`,
        'a.b.c',
      ]
      for (const each of forged) {
        const { status, headers } = await callTool(each)
        assert.equal(status, 401, each)
        assert.match(headers.get('www-authenticate') ?? '', /^Bearer error="invalid_token", resource_metadata="/)
      }
      const byCookie = await new Agent(app).call('modern', 'list_teams', {}, { headers: { cookie: ada.cookie } })
      assert.equal(byCookie.status, 401)
      assert.match(byCookie.headers.get('www-authenticate') ?? '', /scope="profile data:schema data:read"/)
      for (const path of ['/users/me', '/teams', '/users/me/grants', `/teams/${team}/audit`]) {
        assert.equal((await app.ask('GET', path, { token: access })).json.code, 'UNAUTHENTICATED', path)
      }
      assert.equal(await statusAt(access), 200)
    })

    test('narrowing or ending a grant takes effect on the next call, and a sign-out ends no grant', async () => {
      const eve = await app.person('Eve')
      const [one, two] = [await app.team(eve, 'One'), await app.team(eve, 'Two')]
      const tokens = await connected(service, eve, client, { teamIds: [one, two] })
      const agent = new Agent(app, tokens.access)
      assert.equal((await agent.tool('list_teams')).teams.length, 2)
      const [{ id }] = await eve.must('GET', '/users/me/grants')
      await eve.must('PATCH', `/users/me/grants/${id}`, { teamIds: [two], scopes: ['data:schema'] })
      assert.equal((await agent.tool('list_teams')).teams.length, 1)
      assert.equal((await agent.call('modern', 'whoami')).status, 403)

      await app.must('POST', '/auth/sign-out', { body: {}, headers: { cookie: eve.cookie, origin: app.url } })
      assert.equal((await agent.tool('list_teams')).teams.length, 1)
      const next = tokensIn(await refresh(service, client.clientId, tokens.refresh))
      assert.equal(await statusAt(next.access), 200)

      const again = await app.signIn(eve.email)
      await again.must('DELETE', `/users/me/grants/${id}`)
      assert.deepEqual([await statusAt(tokens.access), await statusAt(next.access)], [401, 401])
      assert.deepEqual(errorOf(await refresh(service, client.clientId, next.refresh)), [400, 'invalid_grant'])
    })

    test("an OWNER ends an agent's access to a team, leaving a team ends it too, and a new password ends all access", async () => {
      const fay = await app.person('Fay')
      const own = await app.team(fay, 'Own')
      const left = await app.team(ada, 'Left')
      for (const joined of [team, left]) await app.join(ada, joined, fay)
      const tokens = await connected(service, fay, client, { teamIds: [own, team, left] })
      const agent = new Agent(app, tokens.access)
      const reached = async () => (await agent.tool('list_teams')).teams.map(({ id }: { id: string }) => id).sort()
      assert.deepEqual(await reached(), [own, team, left].sort())
      const grants = await ada.must('GET', `/teams/${team}/grants`)
      const { id } = grants.find((grant: { email: string }) => grant.email === fay.email)
      await ada.must('DELETE', `/teams/${team}/grants/${id}`)
      assert.deepEqual(await reached(), [own, left].sort())
      await fay.must('POST', `/teams/${left}/leave`)
      // Even if the person joins again, the agent has no access.
      await app.join(ada, left, fay)
      assert.deepEqual(await reached(), [own])

      const body = { currentPassword: PASSWORD, newPassword: 'another long password' }
      await app.must('POST', '/auth/change-password', { body, headers: { cookie: fay.cookie, origin: app.url } })
      assert.equal(await statusAt(tokens.access), 401)
      assert.deepEqual(errorOf(await refresh(service, client.clientId, tokens.refresh)), [400, 'invalid_grant'])
    })

    test('the audit names the agent that made a call, and its grant', async () => {
      const gil = await app.person('Gil')
      const own = await app.team(gil, 'Own')
      const id = await datasource(gil, own, 'shop')
      const { access } = await connected(service, gil, client, { teamIds: [own] })
      const reply = await new Agent(app, access).call('modern', 'run_query', { teamId: own, datasourceId: id, sql: 'SELECT 1' }) // prettier-ignore
      assert.equal(reply.json.result.isError, true)
      const [{ id: grantId }] = await gil.must('GET', '/users/me/grants')
      const { items } = await gil.must('GET', `/teams/${own}/audit?action=runQuery`)
      assert.equal(items.length, 1)
      const [{ actor, grantName, via, keyName }] = items
      assert.deepEqual([actor.grantId, grantName, via, keyName], [grantId, 'Test agent', 'CONNECTOR', undefined])
      assert.match(actor.client, /.+\/.+/)
    })
  })

  describe('the endpoints of the agent', () => {
    test('the OAuth endpoints for agents accept forms only, and each field once', async () => {
      const coded = await authorized(service, ada, client, { teamIds: [team] })
      const send = (headers: Record<string, string>, body: string) =>
        service.send('POST', '/auth/oauth2/token', { headers, body })
      const asForm = { 'content-type': 'application/x-www-form-urlencoded' }
      const json = JSON.stringify({ grant_type: 'authorization_code', code: coded.code, client_id: client.clientId })
      assert.equal((await send({ 'content-type': 'application/json' }, json)).status, 415)
      assert.equal((await send(asForm, '')).status, 400)
      assert.equal((await send(asForm, 'x'.repeat(17 << 10))).status, 413)
      const whole = new URLSearchParams({
        grant_type: 'authorization_code',
        client_id: client.clientId,
        redirect_uri: client.redirectUri,
        code: coded.code,
        code_verifier: coded.verifier,
      })
      for (const name of ['grant_type', 'client_id', 'code']) {
        const twice = new URLSearchParams(whole)
        twice.append(name, 'x')
        assert.deepEqual(errorOf(await send(asForm, twice.toString())), [400, 'invalid_request'], name)
      }
      assert.deepEqual(errorOf(await send(asForm, 'grant_type=client_credentials&client_id=x')), [
        400,
        'unsupported_grant_type',
      ])
      const done = await send(asForm, `${whole}&client_secret=x&client_assertion=y`)
      assert.equal(done.status, 200, done.text)
      assert.equal(done.headers['cache-control'], 'no-store')
      assert.deepEqual(Object.keys(done.json).sort(), ['access_token', 'expires_in', 'refresh_token', 'scope', 'token_type']) // prettier-ignore
      const rest = await app.ask('PATCH', '/users/me', { token: ada.jwt, body: 'name=x', headers: asForm })
      assert.equal(rest.status, 415)
    })

    test('the OAuth endpoints for agents reveal nothing about an invalid token', async () => {
      for (const token of ['', 'vitrine_rt_', 'vitrine_rt_x', 'x', "' or 1=1 --", '\u0000'])
        assert.equal((await refresh(service, client.clientId, token)).status, 400)
      const coded = await authorized(service, ada, client, { teamIds: [team] })
      for (const code of ['x', `${coded.code}x`, "'"]) {
        assert.deepEqual(errorOf(await exchange(service, { ...coded, code })), [400, 'invalid_grant'])
      }
      assert.equal((await form(service, 'revoke', { token: 'x', client_id: 'nobody' })).status, 200)
    })

    test('no other endpoint of the OAuth library can be reached', async () => {
      const cookie = { cookie: ada.cookie, origin: app.url, 'content-type': 'application/json' }
      const paths = [
        'GET /auth/oauth2/introspect',
        'POST /auth/oauth2/introspect',
        'GET /auth/oauth2/userinfo',
        'POST /auth/oauth2/consent',
        'POST /auth/oauth2/continue',
        'POST /auth/oauth2/create-client',
        'GET /auth/oauth2/get-clients',
        'GET /auth/oauth2/get-consents',
        'GET /auth/oauth2/public-client?client_id=x',
        'POST /auth/oauth2/client/rotate-secret',
        'POST /auth/oauth2/delete-client',
        'GET /auth/oauth2/end-session',
        'POST /auth/admin/oauth2/create-client',
        'POST /auth/admin/oauth2/resources',
        'GET /auth/.well-known/oauth-authorization-server',
        'GET /auth/jwks',
        'GET /auth/oauth2/error',
        'GET /auth/oauth2/token',
        'GET /auth/oauth2/register',
        'POST /auth/oauth2/authorize',
        'PUT /auth/consent',
        'GET /.well-known/openid-configuration',
      ]
      for (const each of paths) {
        const [method, path] = each.split(' ') as ['GET' | 'POST' | 'PUT', string]
        const sent = method === 'GET' ? { headers: cookie } : { headers: cookie, body: '{}' }
        const { status, json } = await service.send(method, path, sent)
        assert.ok(status === 404 || status === 405, `${each}: ${status}`)
        assert.match(json.code, /^(NOT_FOUND|METHOD_NOT_ALLOWED)$/, each)
      }
    })
  })

  test('no log line and no error contains a code, a token or a verifier', async () => {
    const lines: string[] = []
    await using own = await startApp({ logged: (line) => lines.push(line) })
    const at = overHttp(own)
    const hal = await own.person('Hal')
    const [theirs, agent] = [await own.team(hal), await registered(at)]
    const coded = await authorized(at, hal, agent, { teamIds: [theirs] })
    const tokens = tokensIn(await exchange(at, coded))
    const wrong = [
      await exchange(at, coded),
      await refresh(at, agent.clientId, tokens.refresh),
      await exchange(at, { ...coded, verifier: `${coded.verifier}x` }),
      await form(at, 'revoke', { token: tokens.access, client_id: 'other' }),
    ]
    const printed = [...lines, ...wrong.map(({ text }) => text)].join('\n')
    for (const secret of [coded.code, coded.verifier, tokens.access, tokens.refresh]) {
      assert.ok(!printed.includes(secret))
    }
  })
})
