// Requests JSON from a provider. The operator has configured the host of the provider. Other hosts, which the provider
// names, must have public addresses unless the operator allows private hosts.
import { bareHost } from '../../host-names.ts'
import type { Provider } from '../../config.ts'
import { dialing, sendOut, type Transport } from '../../outbound-request.ts'
import { ProviderProblem } from './provider-identity.ts'

const SIZE_MAX = { bytesMax: 256 * 1024, headerBytesMax: 32 * 1024 }

interface ProviderAnswer {
  readonly status: number
  /** Null if the answer is not JSON. */
  readonly json: unknown
}

interface ProviderQuestion {
  readonly headers?: Readonly<Record<string, string>>
  readonly form?: Readonly<Record<string, string>>
}

/** Throws an Error without secrets if the URL is not allowed, or if there is no answer. */
export type AskProvider = (url: string, question?: ProviderQuestion) => Promise<ProviderAnswer>

export function askerOf(
  { issuer }: Pick<Provider, 'issuer'>,
  {
    allowPrivateHosts,
    transport = {},
  }: { readonly allowPrivateHosts: boolean; readonly transport?: Partial<Transport> },
): AskProvider {
  const trusted = new URL(issuer)
  const host = bareHost(trusted.hostname)
  const through: Transport = {
    dial: dialing((named) => allowPrivateHosts || named === host),
    ...transport,
  }
  return async (address, { headers = {}, form } = {}) => {
    const url = new URL(address)
    if (!isAllowed(url, trusted)) throw new ProviderProblem('the provider names an address without TLS')
    const { status, text } = await sendOut(through, {
      url,
      ...SIZE_MAX,
      headers: {
        accept: 'application/json',
        'user-agent': 'Vitrine',
        ...(form === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded' }),
        ...headers,
      },
      ...(form === undefined ? {} : { body: new URLSearchParams(form).toString() }),
    })
    return { status, json: parsed(text) }
  }
}

/** Allows HTTPS, and HTTP only at the origin that the operator configured with HTTP (on this machine). */
export function isAllowed(url: URL, trusted: URL): boolean {
  return url.protocol === 'https:' || (trusted.protocol === 'http:' && url.origin === trusted.origin)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
