// Reads a request under /auth: an allow-list of paths, their bodies and parameters by schema, and only from our own pages.
import type { z } from 'zod'
import type { Config } from '../config.ts'
import { SignInBody } from '../contract/sign-in-routes.ts'
import { AppError, invalidRequest, notFound } from '../errors.ts'
import { isOwnOrigin, returnPath } from './origins.ts'
import { PATHS } from './paths.ts'

export interface Asked {
  /** `POST /auth/sign-in/email` */
  readonly name: string
  readonly body: Fields | undefined
  readonly query: Fields
  /** Of the body, in lower case. */
  readonly email: string | undefined
}
type Fields = Readonly<Record<string, unknown>>

type Public = Pick<Config, 'publicUrl'>

/** Throws NOT_FOUND for what is not listed, SIGN_IN_REFUSED for another site's page, INVALID_REQUEST. */
export async function readAsked(request: Request, pathname: string, config: Public): Promise<Asked> {
  const name = `${request.method} ${pathname}`
  const path = PATHS.get(name)
  if (path === undefined) throw notFound()
  if (!isOwnOrigin(request, config)) {
    throw new AppError('SIGN_IN_REFUSED', 'This page may not sign in or out here.', {
      extra: { reason: 'INVALID_ORIGIN' },
    })
  }
  const sent = Object.fromEntries(new URL(request.url).searchParams)
  const query = withReturnPaths(parse(path.query, sent), request, config)
  if (path.body === null) return { name, query, body: undefined, email: undefined }
  const body = withReturnPaths(parse(path.body, await bodyOf(request)), request, config)
  return { name, query, body, email: emailOf(body) }
}

/** Without a schema nothing may be sent. */
function parse(schema: z.ZodType | undefined, sent: unknown): Fields {
  if (schema === undefined) {
    const surplus = Object.keys(typeof sent === 'object' && sent !== null ? sent : {})
    if (surplus.length > 0) throw invalidRequest(surplus.map((key) => `${key}: there is no such parameter`))
    return {}
  }
  const result = schema.safeParse(sent)
  if (!result.success) {
    throw invalidRequest(result.error.issues.map((issue) => `${issue.path.join('.') || 'body'}: ${issue.message}`))
  }
  return typeof result.data === 'object' && result.data !== null ? { ...result.data } : {}
}

/** What a link leads on to, as a path of ours. Throws INVALID_REQUEST for anywhere else. */
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
