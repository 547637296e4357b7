// The conformance scenarios of MCP call tools, resources and prompts by name. This file serves those that need no
// session and return text. The other scenarios are listed in connector-conformance.test.ts.
import {
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  Server,
} from '@modelcontextprotocol/server'
import type { ServerContext } from '@modelcontextprotocol/server'
import { SERVER_INFO } from '../../src/connector/json-rpc.ts'

const EMPTY = { type: 'object' as const, properties: {} }
const say = (text: string) => ({ content: [{ type: 'text' as const, text }] })
const tool = (name: string) => ({ name, description: `The fixture ${name}`, inputSchema: EMPTY })

const SCHEMA_2020 = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object' as const,
  $defs: {
    address: {
      $anchor: 'addressDef',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
  },
  properties: { name: { type: 'string' }, address: { $ref: '#/$defs/address' } },
  additionalProperties: false,
}

const TOOLS: Readonly<Record<string, (ctx: ServerContext) => Promise<ReturnType<typeof say> & { isError?: boolean }>>> =
  {
    test_simple_text: async () => say('This is a simple text response for testing.'),
    test_error_handling: async () => ({
      ...say('This tool intentionally returns an error for testing'),
      isError: true,
    }),
    test_logging_tool: async () => say('Nothing was logged.'),
    test_streaming_elicitation: async () => say('Nothing was asked.'),
    async test_missing_capability(ctx) {
      const capabilities: unknown = Reflect.get(ctx.mcpReq.envelope ?? {}, 'io.modelcontextprotocol/clientCapabilities')
      if (!('sampling' in Object(capabilities))) {
        throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { sampling: {} } })
      }
      return say('The client may sample.')
    },
    async test_tool_with_progress(ctx) {
      const progressToken = ctx.mcpReq._meta?.progressToken
      for (const progress of progressToken === undefined ? [] : [0, 50, 100]) {
        await ctx.mcpReq.notify({
          method: 'notifications/progress',
          params: { progressToken: progressToken ?? 0, progress, total: 100 },
        })
      }
      return say('Done.')
    },
  }

export function conformanceServer(): Server {
  const server = new Server(SERVER_INFO, { capabilities: { tools: {}, resources: {}, prompts: {} } })
  server.setRequestHandler('tools/list', () => ({
    tools: [...Object.keys(TOOLS).map(tool), { ...tool('json_schema_2020_12_tool'), inputSchema: SCHEMA_2020 }],
  }))
  server.setRequestHandler('tools/call', async ({ params }, ctx) => {
    const run = TOOLS[params.name]
    if (run === undefined) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `no tool ${params.name}`)
    return await run(ctx)
  })
  const text = { uri: 'test://static-text', mimeType: 'text/plain' }
  server.setRequestHandler('resources/list', () => ({ resources: [{ ...text, name: 'text' }] }))
  server.setRequestHandler('resources/templates/list', () => ({
    resourceTemplates: [{ uriTemplate: 'test://template/{id}/data', name: 'template' }],
  }))
  server.setRequestHandler('resources/read', ({ params: { uri } }) => {
    if (uri === text.uri) return { contents: [{ ...text, text: 'This is the content of the static text resource.' }] }
    const id = /^test:\/\/template\/(\w+)\/data$/.exec(uri)?.[1]
    if (id === undefined) throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'no such resource', { uri })
    return {
      contents: [
        {
          uri,
          mimeType: 'application/json',
          text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
        },
      ],
    }
  })
  server.setRequestHandler('prompts/list', () => ({
    prompts: [
      { name: 'test_simple_prompt', description: 'A prompt' },
      {
        name: 'test_prompt_with_arguments',
        description: 'A prompt with arguments',
        arguments: ['arg1', 'arg2'].map((name) => ({ name, description: name, required: true })),
      },
    ],
  }))
  server.setRequestHandler('prompts/get', ({ params: { name, arguments: args = {} } }) => {
    const words =
      name === 'test_simple_prompt'
        ? 'This is a simple prompt for testing.'
        : `Prompt with arguments: arg1='${args['arg1']}', arg2='${args['arg2']}'`
    return { messages: [{ role: 'user' as const, content: { type: 'text' as const, text: words } }] }
  })
  return server
}
