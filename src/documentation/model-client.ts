// Asks the operator's language model. The library chooses only the path and the body of a request. This file sets the
// headers and all other settings, so the environment variables of the library have no effect.
import type { ModelSettings } from '../config.ts'

/** Throws the library's error if no answer comes. */
export type Ask = (instructions: string, question: string, signal: AbortSignal) => Promise<string>

const ANSWER_BYTES = 256 * 1024
const TOO_LARGE = 413
const ANSWER_TOKENS = 4_096
const ANTHROPIC_VERSION = '2023-06-01'
/** If the endpoint is busy or fails. The library waits between retries. */
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

/** Sets every setting, because the libraries would read omitted ones from the environment. */
function common({ url }: ModelSettings, timeout: number, headers: Readonly<Record<string, string>>) {
  return {
    baseURL: url,
    timeout,
    maxRetries: RETRIES,
    fetch: boundedFetch(headers),
    logLevel: 'off',
  } as const
}

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
  // The library adds `/v1` to the path.
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
 * Returns a fetch() that sends only our headers. The libraries add headers with details of the machine and from the
 * environment (ANTHROPIC_CUSTOM_HEADERS, OPENAI_CUSTOM_HEADERS), and no setting turns this off. It follows no
 * redirects, because the prompt and the key are only for this address. It reads the whole answer before it returns,
 * because the libraries stop their timeout when fetch() returns. For an answer that is too large, it returns a status
 * for which the libraries do not retry.
 */
function boundedFetch(own: Readonly<Record<string, string>>): typeof fetch {
  const sent = { accept: 'application/json', 'content-type': 'application/json', 'user-agent': 'vitrine', ...own }
  return async (input, init) => {
    const response = await fetch(input, { ...init, headers: sent, redirect: 'manual' })
    const parts: Uint8Array[] = []
    let bytes = 0
    for await (const part of response.body ?? []) {
      bytes += part.byteLength
      // Returning also closes the connection.
      if (bytes > ANSWER_BYTES) return new Response(null, { status: TOO_LARGE })
      parts.push(part)
    }
    const headers = new Headers(response.headers)
    // fetch() has decompressed the body, so these headers are wrong now.
    for (const name of ['content-encoding', 'content-length']) headers.delete(name)
    const body = response.body === null ? null : Buffer.concat(parts)
    return new Response(body, { status: response.status, statusText: response.statusText, headers })
  }
}
