// GitHub has no OpenID Connect for people, so this uses OAuth 2.0 and PKCE, and only a verified primary address.
import { hash } from 'node:crypto'
import { z } from 'zod'
import type { Provider } from '../../config.ts'
import type { AskProvider } from './ask-provider.ts'
import type { Flow } from './provider-flow.ts'
import { errorOf } from './oidc.ts'
import { plainText, ProviderProblem } from './provider-identity.ts'

const Token = z.object({ access_token: z.string() })
const User = z.object({ id: z.int(), login: z.string(), name: z.string().nullish() })
const Emails = z.array(z.object({ email: z.email().max(254), primary: z.boolean(), verified: z.boolean() })).max(1_000)

export function gitHubFlow(provider: Provider, ask: AskProvider): Flow {
  const { issuer, clientId, clientSecret } = provider
  const api = issuer === 'https://github.com' ? 'https://api.github.com' : `${issuer}/api/v3`
  return {
    authorizationUrl({ redirectUri, state, verifier }) {
      const url = new URL(`${issuer}/login/oauth/authorize`)
      const parameters = {
        client_id: clientId,
        redirect_uri: redirectUri,
        scope: 'user:email',
        state,
        code_challenge: hash('sha256', verifier, 'base64url'),
        code_challenge_method: 'S256',
      }
      for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
      return Promise.resolve(url.href)
    },
    async profile({ redirectUri, verifier }, { code }) {
      const { json } = await ask(`${issuer}/login/oauth/access_token`, {
        form: {
          client_id: clientId,
          client_secret: clientSecret,
          code,
          redirect_uri: redirectUri,
          code_verifier: verifier,
        },
      })
      const token = Token.safeParse(json)
      if (!token.success) throw new ProviderProblem(`no token: ${errorOf(json)}`)
      const headers = { authorization: `Bearer ${token.data.access_token}`, accept: 'application/vnd.github+json' }
      const user = User.parse((await ask(`${api}/user`, { headers })).json)
      const emails = Emails.parse((await ask(`${api}/user/emails`, { headers })).json)
      const primary = emails.find((each) => each.primary)
      return {
        subject: String(user.id),
        email: primary?.email.toLowerCase() ?? null,
        emailVerified: primary?.verified === true,
        name: plainText(user.name) ?? plainText(user.login) ?? 'Unnamed',
        label: plainText(user.login),
      }
    },
  }
}
