// Answers with the SDK of the protocol, for all messages except the tool calls that mcp-route.ts answers itself. Most
// services get few of these messages, so this file and the SDK are loaded when the first one arrives.
import { createMcpHandler, ProtocolError, ProtocolErrorCode, Server } from '@modelcontextprotocol/server'
import type { Arrival } from '../auth/caller.ts'
import { callTool, isTool, type ToolDeps } from './call-tool.ts'
import { TOOLS } from './tool-definitions.ts'
import { INSTRUCTIONS } from './instructions.ts'
import { contentOf, SERVER_INFO } from './json-rpc.ts'
import { FIRST_MS, NEXT_MS, stillRunning } from './progress.ts'
import { PROMPTS, promptText } from './prompts.ts'
import { refusalOf } from './refusal-body.ts'
import { listResources, readResource, TEMPLATE } from './resources.ts'

export type Sdk = (headers: Headers, body: unknown, arrival: Arrival) => Promise<Response>

const HOUR_MS = 3_600_000
/** Answers that are the same for every caller. */
const PUBLIC = { ttlMs: HOUR_MS, cacheScope: 'public' } as const
/** Answers that depend on the caller's access. */
const PRIVATE = { ttlMs: 60_000, cacheScope: 'private' } as const

/** Conformance tests pass a server with other tools. */
export function openSdk(deps: ToolDeps, makeServer = serverFor): Sdk {
  const arrivals = new WeakMap<Request, Arrival>()
  const { fetch } = createMcpHandler(
    ({ requestInfo }) => {
      const arrival = requestInfo === undefined ? undefined : arrivals.get(requestInfo)
      if (arrival === undefined) throw new Error('a message without a caller')
      return makeServer(deps, arrival)
    },
    { onerror: () => undefined },
  )
  return async (headers, body, arrival) => {
    const request = new Request('http://localhost/mcp', { method: 'POST', headers, signal: arrival.signal })
    arrivals.set(request, arrival)
    return await fetch(request, { parsedBody: body })
  }
}

function serverFor(deps: ToolDeps, arrival: Arrival): Server {
  const server = new Server(SERVER_INFO, {
    capabilities: {
      tools: { listChanged: false },
      resources: { listChanged: false, subscribe: false },
      prompts: { listChanged: false },
    },
    instructions: INSTRUCTIONS,
    cacheHints: {
      'server/discover': PUBLIC,
      'tools/list': PUBLIC,
      'prompts/list': PUBLIC,
      'resources/templates/list': PUBLIC,
      'resources/list': PRIVATE,
      'resources/read': PRIVATE,
    },
  })
  server.setRequestHandler('tools/list', () => ({ tools: TOOLS.map((tool) => ({ ...tool })) }))
  server.setRequestHandler('tools/call', async ({ params }, ctx) => {
    const { name, arguments: args = {} } = params
    if (!isTool(name))
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no tool ${JSON.stringify(name)}.`)
    const token = ctx.mcpReq._meta?.progressToken
    using _ticks =
      token === undefined
        ? null
        : everyTick((seconds) => {
            const params = { progressToken: token, progress: seconds, message: stillRunning(seconds) }
            void ctx.mcpReq.notify({ method: 'notifications/progress', params })
          })
    const answer = await callTool(deps, { ...arrival, signal: ctx.mcpReq.signal }, name, args)
    const { json, isError } = answer
    return { content: contentOf(answer), structuredContent: JSON.parse(json), ...(isError && { isError }) }
  })
  addResources(server, deps, arrival)
  addPrompts(server, deps, arrival)
  return server
}

function addResources(server: Server, { operations, log }: ToolDeps, arrival: Arrival): void {
  server.setRequestHandler('resources/list', ({ params }) =>
    asProtocol(log, arrival, async () => ({ ...(await listResources(operations, arrival, params?.cursor)) })),
  )
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: [TEMPLATE] }))
  server.setRequestHandler('resources/read', ({ params }) =>
    asProtocol(log, arrival, async () => ({ contents: [await readResource(operations, arrival, params.uri)] })),
  )
}

function addPrompts(server: Server, { log }: ToolDeps, arrival: Arrival): void {
  server.setRequestHandler('prompts/list', () => ({
    prompts: PROMPTS.map((prompt) => ({ ...prompt, arguments: prompt.arguments.map((argument) => ({ ...argument })) })),
  }))
  server.setRequestHandler('prompts/get', ({ params }) =>
    asProtocol(log, arrival, async () => {
      const text = promptText(params.name, params.arguments ?? {})
      return { messages: [{ role: 'user' as const, content: { type: 'text' as const, text } }] }
    }),
  )
}

/** Throws a refusal as an error of the protocol, because only a tool can return a refusal as its result. */
async function asProtocol<T>(log: ToolDeps['log'], { requestId = '' }: Arrival, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const refusal = refusalOf(error, log, requestId)
    const { InternalError, InvalidParams } = ProtocolErrorCode
    const code = refusal.code === 'INTERNAL' ? InternalError : InvalidParams
    throw new ProtocolError(code, refusal.message, { code: refusal.code, ...refusal.extra })
  }
}

/** Calls `tick` after one second and then every two seconds, until disposed. */
function everyTick(tick: (seconds: number) => void): Disposable {
  const began = performance.now()
  const say = () => tick(Math.round((performance.now() - began) / 1000))
  let timer = setTimeout(() => {
    say()
    timer = setInterval(say, NEXT_MS)
  }, FIRST_MS)
  return { [Symbol.dispose]: () => clearInterval(timer) }
}
