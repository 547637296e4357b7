// The client of the MCP SDK connects to the service. It registers itself or uses a client metadata document, in both
// generations of the protocol.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server } from 'node:https'
import { after, before, describe, test } from 'node:test'
import {
  Client,
  StreamableHTTPClientTransport,
  UnauthorizedError,
  type OAuthClientProvider,
} from '@modelcontextprotocol/client'
import { dial } from '../../src/drivers/allowed-addresses.ts'
import { startApp, type Person, type TestApp } from '../support/app.ts'
import { makeCertificates, type Certificates } from '../support/certificates.ts'
import { decide, locationOf, open, overHttp, PROXY } from '../support/oauth.ts'

const REDIRECT = 'http://127.0.0.1:33418/callback'
const DOCUMENT_ID = 'https://agent.example/client.json'

/** A real client stores this on disk. */
class Memory implements OAuthClientProvider {
  readonly redirectUrl = REDIRECT
  readonly clientMetadata = {
    client_name: 'SDK client',
    redirect_uris: [REDIRECT],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  }
  readonly clientMetadataUrl?: string
  asked: URL | undefined
  #client: Parameters<NonNullable<OAuthClientProvider['saveClientInformation']>>[0] | undefined
  #tokens: Parameters<OAuthClientProvider['saveTokens']>[0] | undefined
  #verifier = ''

  constructor(clientMetadataUrl?: string) {
    if (clientMetadataUrl !== undefined) this.clientMetadataUrl = clientMetadataUrl
  }
  state = () => 'state-1'
  clientInformation = () => this.#client
  saveClientInformation: NonNullable<OAuthClientProvider['saveClientInformation']> = (client) =>
    void (this.#client = client)
  tokens = () => this.#tokens
  saveTokens: OAuthClientProvider['saveTokens'] = (tokens) => void (this.#tokens = tokens)
  invalidateCredentials = (scope: string) => {
    if (scope !== 'verifier') this.#tokens = undefined
  }
  redirectToAuthorization = (url: URL) => void (this.asked = url)
  saveCodeVerifier = (verifier: string) => void (this.#verifier = verifier)
  codeVerifier = () => this.#verifier
}

describe('the SDK’s client', () => {
  let certificates: Certificates
  let documents: Server
  let app: TestApp
  let ada: Person
  let team: string

  before(async () => {
    certificates = await makeCertificates()
    const { pem } = certificates
    documents = createServer({ key: pem['server.key'], cert: pem['server.crt'] }, (_request, response) => {
      const document = { client_id: DOCUMENT_ID, client_name: 'Published agent', redirect_uris: [REDIRECT] }
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(document))
    })
    await once(documents.listen(0, '127.0.0.1'), 'listening')
    const address = documents.address()
    assert.ok(typeof address === 'object' && address !== null)
    const at = { host: '127.0.0.1', port: address.port }
    app = await startApp({
      env: PROXY,
      documents: { dial: (_at, signal) => dial(at, true, signal), ca: pem['ca.crt'] ?? '' },
    })
    ada = await app.person('Ada')
    team = await app.team(ada, 'Alpha')
  })
  after(async () => {
    await app[Symbol.asyncDispose]()
    documents.closeAllConnections()
    documents.close()
    await certificates[Symbol.asyncDispose]()
  })

  const clientOf = (mode: 'auto' | 'legacy') =>
    new Client({ name: 'sdk', version: '1.0.0' }, { versionNegotiation: { mode } })
  const transportOf = (authProvider: OAuthClientProvider) =>
    new StreamableHTTPClientTransport(new URL(`${app.url}/mcp`), { authProvider })

  for (const mode of ['auto', 'legacy'] as const) {
    for (const document of [undefined, DOCUMENT_ID]) {
      const way = document === undefined ? 'by registration' : 'by its metadata document'
      test(`the SDK’s client connects ${way} (${mode}), calls a tool, and asks the person again when its access has ended`, async () => {
        const memory = new Memory(document)
        const first = transportOf(memory)
        await assert.rejects(clientOf(mode).connect(first), UnauthorizedError)
        const { asked } = memory
        assert.ok(asked)
        const { searchParams: params } = asked
        assert.equal(params.get('resource'), `${app.url}/mcp`)
        assert.equal(params.get('client_id') === DOCUMENT_ID, document !== undefined)

        const service = overHttp(app)
        const page = locationOf(await open(service, asked.pathname + asked.search, ada))
        const { text } = await open(service, page.pathname + page.search, ada)
        const name = document === undefined ? 'SDK client' : 'Published agent'
        const host = document === undefined ? '127.0.0.1' : 'agent.example'
        assert.ok(text.includes(`<h1>${host}</h1>`) && text.includes(`<em>${name}</em>`), text)
        const decided = await decide(service, ada, page.search.slice(1), { teamIds: [team] })
        await first.finishAuth(new URL(decided.json.url).searchParams)

        const client = clientOf(mode)
        await client.connect(transportOf(memory))
        const { structuredContent } = await client.callTool({ name: 'list_teams', arguments: {} })
        assert.deepEqual(
          (structuredContent as { teams: { name: string }[] }).teams.map((each) => each.name),
          ['Alpha'],
        )
        const grants = await ada.must('GET', '/users/me/grants')
        const grant = grants.at(-1)
        assert.deepEqual([grant.clientName, grant.clientHost], [name, host])
        await ada.must('DELETE', `/users/me/grants/${grant.id}`)
        memory.asked = undefined
        await assert.rejects(client.callTool({ name: 'list_teams', arguments: {} }), UnauthorizedError)
        assert.ok(memory.asked !== undefined, 'it asks the person again')
        await client.close()
      })
    }
  }
})
