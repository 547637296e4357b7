// Prints all routes as an OpenAPI 3.1 document. A route lists only some of its error codes. This file adds the codes
// that follow from its kind (such as 401) or from its fields (place, role, body).
import { z } from 'zod'
import type { ZodType } from 'zod'
import type { Code } from '../errors.ts'
import { STATUS } from '../errors.ts'
import { OAUTH_ROUTES, type OAuthRoute } from './oauth-routes.ts'
import { OPEN_ROUTES } from './routes-without-token.ts'
import type { Route } from './route-type.ts'
import { Exposure } from './exposure-schemas.ts'
import * as shapes from './schemas.ts'
import { SIGN_IN_ROUTES, type SignInRoute } from './sign-in-routes.ts'

export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json }

const VERSION = '1.0.0'
const ABOUT = `Lets a team's databases be inspected and queried, read-only, within what the team exposes.

Five operations accept an API key. Operations for signed-in people need an access token. Error codes are explained in
docs/errors.md, operations in docs/api.md.`

const TAG = {
  key: 'For API keys',
  session: 'For signed-in people',
  signIn: 'Signing in',
  agents: 'Connecting agents',
  open: 'Without a token',
} as const

/** `routes` are the routes that need a token. The document also has the routes without a token. */
export function openapi(routes: Readonly<Record<string, Route>>): Json {
  const paths: Record<string, Record<string, Json>> = {}
  for (const [id, route] of Object.entries(routes)) {
    const path = (paths[route.path] ??= {})
    path[route.method.toLowerCase()] = operation(id, route)
  }
  for (const [name, route] of Object.entries<SignInRoute>(SIGN_IN_ROUTES)) {
    const [method = '', path = ''] = name.split(' ')
    ;(paths[path] ??= {})[method.toLowerCase()] = signInOperation(route)
  }
  for (const [name, route] of Object.entries(OAUTH_ROUTES)) {
    const [method = '', path = ''] = name.split(' ')
    ;(paths[path] ??= {})[method.toLowerCase()] = oauthOperation(route)
  }
  for (const [id, { path, summary, answer, errors }] of Object.entries(OPEN_ROUTES)) {
    paths[path] = {
      get: {
        operationId: id,
        summary,
        tags: [TAG.open],
        security: [],
        parameters: pathParameters(path),
        responses: { ...jsonAnswer(answer), ...refusals(['INVALID_REQUEST', 'INTERNAL', ...errors]) },
      },
    }
  }
  for (const [path, [summary, type]] of Object.entries(OPEN)) paths[path] = { get: openOperation(summary, type) }
  return {
    openapi: '3.1.0',
    info: { title: 'Vitrine', version: VERSION, description: ABOUT, license: { name: 'Apache-2.0' } },
    servers: [{ url: '/' }],
    tags: [
      { name: TAG.key, description: 'With an API key that has the scope, or an access token.' },
      { name: TAG.session, description: 'With an access token only. API keys are refused, whatever their scopes.' },
      {
        name: TAG.signIn,
        description: 'For the pages of the service and for programs. A sign-in sets a cookie for /auth only.',
      },
      { name: TAG.agents, description: 'OAuth 2.1, for agents at POST /mcp (docs/connector/oauth.md).' },
      { name: TAG.open, description: 'Without a token.' },
    ],
    paths,
    components: { securitySchemes: SECURITY, schemas: components() },
  }
}

const OPEN: Readonly<Record<string, readonly [string, string]>> = {
  '/health/live': ['Returns 200 while the process runs.', 'application/json'],
  '/health/ready': ['Returns 200 if requests can be answered, otherwise 503.', 'application/json'],
  '/openapi.json': ['Returns this document.', 'application/json'],
  '/docs': ['Shows this document as a web page.', 'text/html'],
}

const SECURITY: Json = {
  apiKey: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'sk_live_…',
    description: 'An API key with the scope that the operation names.',
  },
  accessToken: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'The access token of a session, from GET /auth/token, valid for ten minutes.',
  },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: 'vitrine.session_token',
    description:
      'The cookie of a session, or of a sign-in that is waiting for a code. Over https its name begins with __Secure-.',
  },
}

function operation(id: string, route: Route): Json {
  const keyed = route.scope !== undefined
  return {
    operationId: id,
    summary: route.summary,
    tags: [keyed ? TAG.key : TAG.session],
    security: keyed ? [{ apiKey: [route.scope ?? ''] }, { accessToken: [] }] : [{ accessToken: [] }],
    ...(route.scope === undefined ? {} : { 'x-required-scope': route.scope }),
    ...(route.role === undefined ? {} : { 'x-required-role': route.role }),
    parameters: [...pathParameters(route.path), ...queryParameters(route.query)],
    ...(route.body === undefined ? {} : { requestBody: requestBody(route, route.body) }),
    responses: { ...answers(route), ...refusals(codesOf(route)) },
  }
}

function signInOperation(route: SignInRoute): Json {
  const { answer } = route
  return {
    operationId: route.id,
    summary: route.summary,
    tags: [TAG.signIn],
    security: route.cookie === true ? [{ session: [] }] : [],
    parameters: queryParameters(route.query),
    ...(route.body === undefined
      ? {}
      : { requestBody: { required: true, content: { 'application/json': { schema: schemaOf(route.body) } } } }),
    responses: {
      ...(answer === 'redirect'
        ? { 302: { description: 'Redirects to a page of the console.' } }
        : signInAnswer(answer)),
      ...refusals(signInCodesOf(route)),
    },
  }
}

function oauthOperation(route: OAuthRoute): Json {
  const { answer, body, status = 200, oauthErrors = [] } = route
  const type = body?.type === 'form' ? 'application/x-www-form-urlencoded' : 'application/json'
  return {
    operationId: route.id,
    summary: route.summary,
    tags: [TAG.agents],
    security: route.cookie === true ? [{ session: [] }] : [],
    parameters: queryParameters(route.query),
    ...(body !== undefined && {
      requestBody: { required: true, content: { [type]: { schema: schemaOf(body.schema) } } },
    }),
    responses: {
      ...oauthAnswer(answer, status),
      ...refusals(['INTERNAL', 'STORE_UNAVAILABLE', ...route.errors]),
      ...(oauthErrors.length > 0 && { 400: oauthRefusal(oauthErrors) }),
    },
  }
}

function oauthAnswer(answer: OAuthRoute['answer'], status: number): Record<string, Json> {
  if (answer === 'empty') return { [status]: { description: 'Done.' } }
  if (answer === 'redirect') return { 302: { description: 'Redirects to the consent page, or back to the agent.' } }
  if (answer === 'page') return signInAnswer(answer)
  return { [status]: { description: 'OK', content: { 'application/json': { schema: schemaOf(answer) } } } }
}

function oauthRefusal(errors: readonly string[]): Json {
  const properties = { error: { enum: errors }, error_description: { type: 'string' } }
  const schema = { type: 'object', properties, required: ['error', 'error_description'] }
  return { description: errors.join(', '), content: { 'application/json': { schema } } }
}

function signInAnswer(answer: ZodType | 'page'): Record<string, Json> {
  return answer === 'page' ? { 200: { description: 'OK', content: { 'text/html': {} } } } : jsonAnswer(answer)
}

function jsonAnswer(answer: ZodType): Record<string, Json> {
  return { 200: { description: 'OK', content: { 'application/json': { schema: schemaOf(answer) } } } }
}

function openOperation(summary: string, type: string): Json {
  return {
    summary,
    tags: [TAG.open],
    security: [],
    responses: { 200: { description: 'OK', content: { [type]: {} } } },
  }
}

function pathParameters(path: string): Json[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map((match) => ({
    name: match[1] ?? '',
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }))
}

function queryParameters(query: ZodType | undefined): Json[] {
  if (query === undefined) return []
  const printed = schemaOf(query)
  const properties = isObject(printed) && isObject(printed['properties']) ? printed['properties'] : {}
  const required = isObject(printed) && Array.isArray(printed['required']) ? printed['required'] : []
  return Object.entries(properties).map(([name, schema]) => {
    return { name, in: 'query', required: required.includes(name), schema }
  })
}

function requestBody(route: Route, body: ZodType): Json {
  return {
    required: route.bodyOptional !== true,
    content: { 'application/json': { schema: schemaOf(body) } },
  }
}

function answers(route: Route): Record<string, Json> {
  const status = route.status ?? 200
  if (route.answer === null) return { [status]: { description: 'Done.' } }
  if (route.streams !== undefined)
    return { [status]: { description: 'OK', content: files(route.streams, route.answer) } }
  const content = (schema: Json) => ({ 'application/json': { schema } })
  if (route.startsJob !== true) return { [status]: { description: 'OK', content: content(schemaOf(route.answer)) } }
  return {
    [status]: { description: 'Done.', content: content(schemaOf(shapes.Introspected)) },
    202: { description: 'The work continues as a job.', content: content(schemaOf(shapes.JobStarted)) },
  }
}

/** Only JSON formats get a schema, which describes one line of the file. */
function files(types: readonly string[], row: ZodType): Json {
  return Object.fromEntries(types.map((type) => [type, type.includes('json') ? { schema: schemaOf(row) } : {}]))
}

/** Returns one response per status, with its codes in the description and in an enum. */
function refusals(all: readonly Code[]): Record<string, Json> {
  const byStatus = Map.groupBy(all, (code) => STATUS[code])
  return Object.fromEntries(
    [...byStatus].sort().map(([status, codes]) => [
      String(status),
      {
        description: codes.join(', '),
        ...(status === 429
          ? { headers: { 'Retry-After': { schema: { type: 'integer', minimum: 0 }, description: 'Seconds.' } } }
          : {}),
        content: {
          'application/json': {
            schema: {
              allOf: [
                { $ref: '#/components/schemas/ErrorBody' },
                { type: 'object', properties: { code: { enum: codes } } },
              ],
            },
          },
        },
      },
    ]),
  )
}

/** Adds the codes that follow from the other fields of the route. */
export function codesOf(route: Route): readonly Code[] {
  const codes = new Set<Code>(['UNAUTHENTICATED', 'SCOPE_REQUIRED', 'INVALID_REQUEST', 'INTERNAL'])
  if (route.place !== undefined) codes.add(route.stranger ?? 'NOT_FOUND')
  if (route.place === 'team' && route.invited !== true) codes.add('TEAM_NOT_OPENED')
  if (route.place !== undefined && route.withoutSecondFactor !== true) codes.add('SECOND_FACTOR_REQUIRED')
  if (route.role !== undefined) codes.add('ROLE_REQUIRED')
  // The audit may be unable to record a change.
  if (route.method !== 'GET') codes.add('OVERLOADED')
  if (route.body !== undefined) codes.add('BODY_TOO_LARGE').add('UNSUPPORTED_MEDIA_TYPE')
  codes.add('STORE_UNAVAILABLE')
  for (const code of route.errors) codes.add(code)
  return [...codes]
}

function signInCodesOf(route: SignInRoute): readonly Code[] {
  const codes = new Set<Code>(['INVALID_REQUEST', 'SIGN_IN_REFUSED', 'INTERNAL', 'STORE_UNAVAILABLE'])
  if (route.body !== undefined) codes.add('BODY_TOO_LARGE').add('UNSUPPORTED_MEDIA_TYPE').add('OVERLOADED')
  for (const code of route.errors) codes.add(code)
  return [...codes]
}

/** The schemas that other schemas reference by name. */
const NAMED = {
  Account: shapes.Account,
  Team: shapes.Team,
  TeamDetail: shapes.TeamDetail,
  TeamSettings: shapes.TeamSettings,
  Datasource: shapes.Datasource,
  Description: shapes.Description,
  ExposedTable: shapes.ExposedTable,
  ExposedColumn: shapes.ExposedColumn,
  ColumnStats: shapes.ColumnStats,
  QueryResult: shapes.QueryResult,
  ErrorBody: shapes.ErrorBody,
  ApiKey: shapes.ApiKey,
  NewApiKey: shapes.NewApiKey,
  Member: shapes.Member,
  Exposure,
  Job: shapes.Job,
} as const satisfies Record<string, ZodType>

/** zod cannot print the schemas of name-keyed-objects.ts and long-lists.ts, which bring their own JSON Schema. */
const PRINTED = { io: 'input', unrepresentable: 'any' } as const

const registry = z.registry<{ id: string }>()
for (const [id, schema] of Object.entries(NAMED)) registry.add(schema, { id })

function components(): Json {
  const printed = z.toJSONSchema(registry, { ...PRINTED, uri: (id) => `#/components/schemas/${id}` })
  return bare(printed.schemas)
}

/** Returns JSON Schema 2020-12, as in OpenAPI 3.1. Named schemas become references. */
function schemaOf(schema: ZodType): Json {
  const named = Object.entries(NAMED).find(([, candidate]) => candidate === schema)
  if (named !== undefined) return { $ref: `#/components/schemas/${named[0]}` }
  if (schema instanceof z.ZodArray && schema.element instanceof z.ZodType) {
    return { type: 'array', items: schemaOf(schema.element) }
  }
  return bare(z.toJSONSchema(schema, PRINTED))
}

/** Removes `$schema`, `$id`, and the patterns of times, because `format` is clearer. */
function bare(value: unknown): Json {
  if (Array.isArray(value)) return value.map(bare)
  if (typeof value === 'object' && value !== null) {
    const isTime = 'format' in value && value.format === 'date-time'
    return Object.fromEntries(
      Object.entries(value)
        .filter(([key]) => key !== '$schema' && key !== '$id' && !(isTime && key === 'pattern'))
        .map(([key, member]) => [key, bare(member)]),
    )
  }
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return value
  return null
}

function isObject(value: Json | undefined): value is { readonly [key: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
