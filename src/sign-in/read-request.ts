// Reads a request under /auth. The path must be allowed, body and parameters must match their schemas, and a browser
// must send it from a page of this service.
import type { z } from 'zod'
import type { Config } from '../config.ts'
import { SignInBody } from '../contract/sign-in-routes.ts'
import { AppError, invalidRequest, notFound } from '../errors.ts'
import { isOwnOrigin, returnPath } from './allowed-origins.ts'
import { PATHS } from './allowed-paths.ts'

export interface SignInRequest {
  /** The method and path, for example `POST /auth/sign-in/email`. */
  readonly name: string
  readonly body: Fields | undefined
  readonly query: Fields
  /** The e-mail address in the body, in lower case. */
  readonly email: string | undefined
}
type Fields = Readonly<Record<string, unknown>>

type Public = Pick<Config, 'publicUrl'>

/**
 * Throws NOT_FOUND for an unknown path, SIGN_IN_REFUSED for a page of another site, and
 * INVALID_REQUEST for a body or parameters of another shape.
 */
export async function readSignInRequest(request: Request, pathname: string, config: Public): Promise<SignInRequest> {
  const name = `${request.method} ${pathname}`
  const path = PATHS.get(name)
  if (path === undefined) throw notFound()
  if (!isOwnOrigin(request, config)) {
    throw new AppError('SIGN_IN_REFUSED', 'Pages of another site may not sign in or out.', {
      extra: { reason: 'INVALID_ORIGIN' },
    })
  }
  const sent = Object.fromEntries(new URL(request.url).searchParams)
  const query = withReturnPaths(parse(path.query, sent), request, config)
  if (path.body === null) return { name, query, body: undefined, email: undefined }
  const body = withReturnPaths(parse(path.body, await bodyOf(request)), request, config)
  return { name, query, body, email: emailOf(body) }
}

function parse(schema: z.ZodType | undefined, sent: unknown): Fields {
  if (schema === undefined) {
    const surplus = Object.keys(typeof sent === 'object' && sent !== null ? sent : {})
    if (surplus.length > 0) throw invalidRequest(surplus.map((key) => `${key}: unknown parameter`))
    return {}
  }
  const result = schema.safeParse(sent)
  if (!result.success) {
    throw invalidRequest(result.error.issues.map((issue) => `${issue.path.join('.') || 'body'}: ${issue.message}`))
  }
  return typeof result.data === 'object' && result.data !== null ? { ...result.data } : {}
}

/** Reduces the addresses to return to, such as `callbackURL`, to paths. Throws INVALID_REQUEST for another site. */
function withReturnPaths(fields: Fields, request: Request, config: Public): Fields {
  return Object.fromEntries(
    Object.entries(fields).map(([key, value]) => {
      if ((key !== 'callbackURL' && key !== 'redirectTo') || typeof value !== 'string') return [key, value]
      const path = returnPath(value, request, config)
      if (path === null) throw invalidRequest([`${key}: must be a path of this service`])
      return [key, path]
    }),
  )
}

async function bodyOf(request: Request): Promise<unknown> {
  const sent = await request.text()
  if (sent === '') return {}
  try {
    return JSON.parse(sent)
  } catch {
    throw invalidRequest(['body: not valid JSON'])
  }
}

function emailOf(body: Fields): string | undefined {
  const email = SignInBody.shape.email.safeParse(body['email'])
  return email.success ? email.data.toLowerCase() : undefined
}
