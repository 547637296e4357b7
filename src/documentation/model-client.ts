// Sends one question to the operator's language model and returns the answer's text. The client libraries are loaded
// with the first question. Every setting comes from us, none from the environment; size and time of an answer are
// limited. Only the request body comes from the libraries: the headers are ours.
import type { ModelSettings } from '../config.ts'

/** If no answer comes, the libraries' errors are thrown unchanged. */
export type Ask = (instructions: string, question: string, signal: AbortSignal) => Promise<string>

const ANSWER_BYTES = 256 * 1024
const TOO_LARGE = 413
const ANSWER_TOKENS = 4_096
/** The version of Anthropic's protocol, as its documentation requires. */
const ANTHROPIC_VERSION = '2023-06-01'
/** Retries for a busy or failing endpoint, with the library's own backoff. */
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

/** Settings for both libraries. They would read omitted settings from the environment. */
function common({ url }: ModelSettings, timeout: number, headers: Readonly<Record<string, string>>) {
  return {
    baseURL: url,
    timeout,
    maxRetries: RETRIES,
    fetch: boundedFetch(headers),
    logLevel: 'off',
  } as const
}

/** A placeholder for an endpoint that needs no key. */
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
  // The library appends the version to the path itself.
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
 * Sends our headers only: the libraries would add ANTHROPIC_CUSTOM_HEADERS or OPENAI_CUSTOM_HEADERS, which no setting
 * turns off, and details of the machine. Reads the whole answer within the size limit and the deadline; the libraries'
 * own timeout ends with the headers. Follows no redirects, because the prompt and the key are meant for this address
 * only. A refused answer gets a status that the libraries do not retry.
 */
function boundedFetch(own: Readonly<Record<string, string>>): typeof fetch {
  const sent = { accept: 'application/json', 'content-type': 'application/json', 'user-agent': 'vitrine', ...own }
  return async (input, init) => {
    const response = await fetch(input, { ...init, headers: sent, redirect: 'manual' })
    const parts: Uint8Array[] = []
    let bytes = 0
    for await (const part of response.body ?? []) {
      bytes += part.byteLength
      // Leaving the loop closes the connection.
      if (bytes > ANSWER_BYTES) return new Response(null, { status: TOO_LARGE })
      parts.push(part)
    }
    const headers = new Headers(response.headers)
    // The body is already decompressed.
    for (const name of ['content-encoding', 'content-length']) headers.delete(name)
    const body = response.body === null ? null : Buffer.concat(parts)
    return new Response(body, { status: response.status, statusText: response.statusText, headers })
  }
}
