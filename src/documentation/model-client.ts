// Asks the operator's language model one thing and answers its text. The client libraries are loaded with the first
// question; they get every setting from us, none from the environment, and no answer larger or slower than we take. Of what
// they would send, only the body leaves: the headers are ours.
import type { ModelSettings } from '../config.ts'

/** Throws where no answer comes: the libraries' errors, unread. */
export type Ask = (instructions: string, question: string, signal: AbortSignal) => Promise<string>

const ANSWER_BYTES = 256 * 1024
const TOO_LARGE = 413
const ANSWER_TOKENS = 4_096
/** Of Anthropic's protocol, as its documentation asks for it. */
const ANTHROPIC_VERSION = '2023-06-01'
/** Of an endpoint that is busy or fails, with the library's own back-off. */
const RETRIES = 2

export async function openClient(settings: ModelSettings, timeoutMs: number): Promise<Ask> {
  switch (settings.kind) {
    case 'openai':
      return await openaiClient(settings, timeoutMs)
    case 'anthropic':
      return await anthropicClient(settings, timeoutMs)
    default:
      return settings.kind satisfies never
  }
}

/** What both libraries are told: what is left out they would look for in the environment. */
function common({ url }: ModelSettings, timeout: number, headers: Readonly<Record<string, string>>) {
  return {
    baseURL: url,
    timeout,
    maxRetries: RETRIES,
    fetch: boundedFetch(headers),
    logLevel: 'off',
  } as const
}

/** For an endpoint that needs no key, a word in its place. */
const NO_KEY = 'none'

async function openaiClient(settings: ModelSettings, timeoutMs: number): Promise<Ask> {
  const { OpenAI } = await import('openai')
  const apiKey = settings.key ?? NO_KEY
  const client = new OpenAI({
    ...common(settings, timeoutMs, { authorization: `Bearer ${apiKey}` }),
    apiKey,
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
  })
  return async (instructions, question, signal) => {
    const answer = await client.chat.completions.create(
      {
        model: settings.name,
        messages: [
          { role: 'system', content: instructions },
          { role: 'user', content: question },
        ],
      },
      { signal },
    )
    return answer.choices[0]?.message.content ?? ''
  }
}

async function anthropicClient(settings: ModelSettings, timeoutMs: number): Promise<Ask> {
  const { Anthropic } = await import('@anthropic-ai/sdk')
  // The library adds the version to the path itself.
  const baseURL = settings.url.replace(/\/v1$/, '')
  const apiKey = settings.key ?? NO_KEY
  const client = new Anthropic({
    ...common(settings, timeoutMs, { 'x-api-key': apiKey, 'anthropic-version': ANTHROPIC_VERSION }),
    baseURL,
    apiKey,
    authToken: null,
    webhookKey: null,
    openTelemetry: false,
  })
  return async (instructions, question, signal) => {
    const answer = await client.messages.create(
      {
        model: settings.name,
        max_tokens: ANSWER_TOKENS,
        system: instructions,
        messages: [{ role: 'user', content: question }],
      },
      { signal },
    )
    return answer.content.map((part) => (part.type === 'text' ? part.text : '')).join('')
  }
}

/**
 * Sends our headers and no other: the libraries add what ANTHROPIC_CUSTOM_HEADERS or OPENAI_CUSTOM_HEADERS say, with no
 * setting against it, and tell about the machine. Reads the whole answer, within the bound and the time of the request:
 * the libraries' own time ends with the headers. It follows nobody elsewhere, as what is told, and the key, are for this
 * address alone. What is not taken is answered with a status that the libraries do not ask again for.
 */
function boundedFetch(own: Readonly<Record<string, string>>): typeof fetch {
  const sent = { accept: 'application/json', 'content-type': 'application/json', 'user-agent': 'vitrine', ...own }
  return async (input, init) => {
    const response = await fetch(input, { ...init, headers: sent, redirect: 'manual' })
    const parts: Uint8Array[] = []
    let bytes = 0
    for await (const part of response.body ?? []) {
      bytes += part.byteLength
      // Leaving the loop ends the connection.
      if (bytes > ANSWER_BYTES) return new Response(null, { status: TOO_LARGE })
      parts.push(part)
    }
    const headers = new Headers(response.headers)
    // It is unpacked by now.
    for (const name of ['content-encoding', 'content-length']) headers.delete(name)
    const body = response.body === null ? null : Buffer.concat(parts)
    return new Response(body, { status: response.status, statusText: response.statusText, headers })
  }
}
