// Google’s token endpoint for the BigQuery double, with a service account that is created for the test. The endpoint
// returns a token only if the account’s key has signed the assertion, its audience and scope are right, and it is valid
// for at most an hour.
import { createVerify, generateKeyPairSync, randomUUID } from 'node:crypto'
import type { Reply } from './bigquery.ts'

const AUDIENCE = 'https://oauth2.googleapis.com/token'
const SCOPE = 'https://www.googleapis.com/auth/bigquery'

const newKeys = () => generateKeyPairSync('rsa', { modulusLength: 2048 })

/** Most accounts of a process have this key, because making a key takes 0.1 s of CPU time. */
const KEYS = newKeys()

export class TestDoor {
  readonly email = 'reader@vitrine-test.iam.gserviceaccount.com'
  readonly #keys: typeof KEYS
  readonly #tokens = new Set<string>()
  /** The lifetime of tokens in seconds, as the endpoint reports it. */
  expiresIn = 3600
  /** What was wrong with received assertions. */
  readonly refused: string[] = []

  constructor({ hasOwnKeys = false } = {}) {
    this.#keys = hasOwnKeys ? newKeys() : KEYS
  }

  /** Returns a key file as Google would issue it. `other` replaces fields. */
  keyFile(other: Readonly<Record<string, unknown>> = {}): string {
    return JSON.stringify({
      type: 'service_account',
      project_id: 'vitrine-test',
      private_key_id: 'f00d',
      private_key: this.#keys.privateKey.export({ type: 'pkcs8', format: 'pem' }),
      client_email: this.email,
      client_id: '1234567890',
      auth_uri: 'https://accounts.google.com/o/oauth2/auth',
      token_uri: AUDIENCE,
      universe_domain: 'googleapis.com',
      ...other,
    })
  }

  revoke(): void {
    this.#tokens.clear()
  }

  admits(authorization: string | undefined): boolean {
    return authorization !== undefined && this.#tokens.has(authorization.replace(/^Bearer /, ''))
  }

  exchange(form: Readonly<Record<string, string>> | null): Reply {
    const wrong = this.#wrong(form ?? {})
    if (wrong !== null) {
      this.refused.push(wrong)
      return { status: 400, body: { error: 'invalid_grant', error_description: 'Invalid JWT Signature.' } }
    }
    const token = `ya29.${randomUUID()}`
    this.#tokens.add(token)
    return { status: 200, body: { access_token: token, expires_in: this.expiresIn, token_type: 'Bearer' } }
  }

  #wrong(form: Readonly<Record<string, string>>): string | null {
    if (form['grant_type'] !== 'urn:ietf:params:oauth:grant-type:jwt-bearer') return 'grant_type'
    const [header = '', claims = '', signature = ''] = (form['assertion'] ?? '').split('.')
    const decoded = (part: string): Record<string, unknown> => JSON.parse(Buffer.from(part, 'base64url').toString())
    const { alg } = decoded(header)
    const { iss, scope, aud, iat, exp } = decoded(claims)
    if (alg !== 'RS256') return 'alg'
    const verify = createVerify('RSA-SHA256').update(`${header}.${claims}`)
    if (!verify.verify(this.#keys.publicKey, Buffer.from(signature, 'base64url'))) return 'signature'
    if (iss !== this.email) return 'iss'
    if (scope !== SCOPE) return 'scope'
    if (aud !== AUDIENCE) return 'aud'
    const now = Date.now() / 1000
    if (typeof iat !== 'number' || Math.abs(now - iat) > 60) return 'iat'
    if (typeof exp !== 'number' || exp - iat > 3600 || exp <= now) return 'exp'
    return null
  }
}
