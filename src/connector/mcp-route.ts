// The agent connector: POST /mcp, with the Model Context Protocol. It runs the same operations as REST. This folder
// answers a plain `tools/call` itself, and the SDK of the protocol answers all other messages
// (docs/decisions/0027-hot-path.md). There are no sessions, so any process can answer the next request.
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Authenticator } from '../auth/authenticate.ts'
import type { Arrival } from '../auth/caller.ts'
import { VALUES } from '../contract/route-type.ts'
import { AppError, STATUS, type Code } from '../errors.ts'
import { hangUpOf, HungUp } from '../hang-up.ts'
import { callTool, isTool, type ToolDeps } from './call-tool.ts'
import { ClientNames } from './client-names.ts'
import type { ToolName } from './tool-definitions.ts'
import { challenge, foreignPlace, scopeChallenge, type Place } from './origins-and-challenges.ts'
import { errorMessage, isId, progressMessage, resultMessage, RPC, toolCallOf } from './json-rpc.ts'
import type { MessageId, ToolCall } from './json-rpc.ts'
import { endsSoon, stillRunning, stream } from './progress.ts'
import { isObject } from './json-object.ts'
import { refusalOf } from './refusal-body.ts'
import { requireScope } from './needed-scope.ts'
import type { Sdk } from './answer-with-sdk.ts'

export interface ConnectorDoor extends ToolDeps, Place {
  readonly authenticator: Pick<Authenticator, 'authenticateConnector'>
  readonly sdk?: () => Promise<Sdk>
}

const PATH = '/mcp'
const JSON_TYPE = 'application/json'
/** A message needs four fields. With many unknown fields, the SDK would take long to list them. */
const FIELDS_MAX = 16
const OTHER_METHODS = ['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

/** All errors are JSON-RPC messages, even errors of the HTTP layer. */
export function mountConnector(app: FastifyInstance, door: ConnectorDoor): void {
  const names = new ClientNames()
  let loading: Promise<Sdk> | undefined
  const sdk = door.sdk ?? (() => (loading ??= import('./answer-with-sdk.ts').then(({ openSdk }) => openSdk(door))))
  app.register(async (scope) => {
    scope.setErrorHandler<FastifyError>((error, request, reply) => refuse(door, request, reply, error))
    scope.route({
      method: OTHER_METHODS,
      url: PATH,
      config: { operation: 'mcp' },
      onRequest: async (request, reply) => {
        const foreign = foreignPlace(door, request.headers)
        if (foreign !== null) return send(reply, 403, errorMessage(RPC.refused, foreign))
        return send(reply.header('allow', 'POST'), 405, errorMessage(RPC.refused, 'This address takes POST only.'))
      },
      handler: () => undefined,
    })
    scope.route({
      method: 'POST',
      url: PATH,
      config: { operation: 'mcp', valuesMax: VALUES.many },
      onRequest: async (request, reply) => {
        const foreign = foreignPlace(door, request.headers)
        if (foreign !== null) return send(reply, 403, errorMessage(RPC.refused, foreign))
        request.caller = await door.authenticator.authenticateConnector(request.headers.authorization)
        request.knownAt = performance.now()
      },
      handler: async (request, reply) => {
        const { body, headers, caller, knownAt } = request
        if (caller === null) throw new AppError('INTERNAL', 'The caller was not authenticated.')
        if (body === undefined) return send(reply, 400, errorMessage(RPC.parse, 'The body is empty. Send one message.'))
        if (Array.isArray(body)) {
          // A batch could run many queries in one request.
          return send(reply, 400, errorMessage(RPC.invalidRequest, 'Batches are not accepted. Send one message.'))
        }
        if (isObject(body) && Object.keys(body).length > FIELDS_MAX) {
          return send(
            reply,
            400,
            errorMessage(RPC.invalidRequest, 'A message has jsonrpc, id, method and params only.'),
          )
        }
        if (isListening(body)) {
          return send(
            reply,
            404,
            errorMessage(RPC.noMethod, 'This service has no notifications to listen for.', {}, body.id),
          )
        }
        requireScope(caller, body)
        const signal = hangUpOf(reply.raw)
        const client = names.of(caller, headers['user-agent'])
        const about = { requestId: request.id, ...(request.trace !== null && { trace: request.trace }) }
        const arrival: Arrival = { caller, knownAt, via: 'CONNECTOR', ...about, signal, client }
        const call = toolCallOf(headers, body)
        if (call !== null && isTool(call.name)) return await answerCall(door, reply, arrival, call, call.name)
        names.note(caller, headers['user-agent'], body)
        const answer = await sdk()
        const response = await answer(headersOf(request), body, arrival)
        return await reply.header('cache-control', 'no-store').send(response)
      },
    })
  })
}

/** Answers with one JSON text, or with a stream of events if the call is slow and the client asked for progress. */
async function answerCall(
  door: ConnectorDoor,
  reply: FastifyReply,
  before: Arrival,
  call: ToolCall,
  name: ToolName,
): Promise<FastifyReply> {
  const arrival = { ...before, client: call.client ?? before.client }
  const work = callTool(door, arrival, name, call.args)
  const { progressToken } = call
  if (progressToken === undefined || (await endsSoon(work))) {
    const answer = await work
    if (reply.raw.destroyed) return reply.hijack()
    return send(reply, 200, resultMessage(call, answer))
  }
  reply.hijack()
  const message = work.then(
    (answer) => resultMessage(call, answer),
    (error: unknown) =>
      errorMessage(RPC.refused, refusalOf(error, door.log, reply.request.id).message, undefined, call.id),
  )
  await stream(reply.raw, message, (seconds) => progressMessage(progressToken, seconds, stillRunning(seconds)))
  return reply
}

/** This service has no notifications about changed lists, so it opens no stream. */
function isListening(body: unknown): body is { readonly id: MessageId } {
  return isObject(body) && body['method'] === 'subscriptions/listen' && isId(body['id'])
}

/** Leaves out the token and the cookies. */
function headersOf({ headers }: FastifyRequest): Headers {
  const own = new Headers()
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value === 'string' && name !== 'authorization' && name !== 'cookie') own.set(name, value)
  }
  return own
}

/** Refuses a request with an HTTP status. Sends nothing if the client hung up. */
function refuse(door: ConnectorDoor, request: FastifyRequest, reply: FastifyReply, error: unknown): FastifyReply {
  const known = bodyRefusal(error)
  if (known !== null) {
    const { reason, code, message } = known
    return send(reply, STATUS[reason], errorMessage(code, message, { code: reason }))
  }
  if (error instanceof HungUp) return reply.hijack()
  const refusal = refusalOf(error, door.log, request.id)
  request.refusal = refusal.code
  const { authorization } = request.headers
  if (refusal.code === 'UNAUTHENTICATED') reply.header('www-authenticate', challenge(door, authorization !== undefined))
  if (refusal.code === 'SCOPE_REQUIRED') reply.header('www-authenticate', scopeChallenge(door, refusal))
  const code = refusal.code === 'INVALID_REQUEST' ? RPC.invalidRequest : RPC.refused
  return send(
    reply,
    STATUS[refusal.code],
    errorMessage(code, refusal.message, { code: refusal.code, ...refusal.extra }),
  )
}

interface BodyRefusal {
  readonly reason: Code
  readonly code: number
  readonly message: string
}

/** Replaces Fastify's texts, because they quote the input. */
function bodyRefusal(error: unknown): BodyRefusal | null {
  if (!(error instanceof Error) || error instanceof AppError) return null
  const code = 'code' in error ? error.code : undefined
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') {
    return { reason: 'BODY_TOO_LARGE', code: RPC.refused, message: 'The body is too large. The limit is 1 MiB.' }
  }
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') {
    return {
      reason: 'UNSUPPORTED_MEDIA_TYPE',
      code: RPC.refused,
      message: 'Send the body with Content-Type: application/json.',
    }
  }
  if (!('statusCode' in error) || error.statusCode !== 400) return null
  const message = 'The body is not valid JSON. Check quotes, commas and brackets.'
  return { reason: 'INVALID_REQUEST', code: RPC.parse, message }
}

function send(reply: FastifyReply, status: number, message: string): FastifyReply {
  return reply.code(status).header('content-type', JSON_TYPE).header('cache-control', 'no-store').send(message)
}
