// The audit records the name of a client. In versions of the protocol before 2026-07-28, only the message `initialize`
// contains the name. This service keeps no sessions, so it uses the last `initialize` with the same User-Agent and the
// same key or grant.
import type { Caller } from '../auth/caller.ts'
import { clientOf } from '../auth/client-name-and-address.ts'
import { BoundedMap } from '../bounded-map.ts'
import { clientInfoOf } from './json-rpc.ts'
import { isObject } from './json-object.ts'

const CLIENTS_MAX = 2_000

export class ClientNames {
  readonly #names = new BoundedMap<string, string>(CLIENTS_MAX)

  note(caller: Caller, userAgent: string | undefined, body: unknown): void {
    if (!isObject(body) || body['method'] !== 'initialize' || !isObject(body['params'])) return
    const name = clientInfoOf(body['params']['clientInfo'])
    if (name !== undefined) this.#names.set(keyOf(caller, userAgent), name)
  }

  of(caller: Caller, userAgent: string | undefined): string | undefined {
    return this.#names.get(keyOf(caller, userAgent)) ?? clientOf(userAgent)
  }
}

function keyOf(caller: Caller, userAgent: string | undefined): string {
  return `${idOf(caller)}/${clientOf(userAgent) ?? ''}`
}

function idOf(caller: Caller): string {
  switch (caller.kind) {
    case 'key':
      return caller.keyId
    case 'grant':
      return caller.grantId
    case 'session':
      return caller.sessionId
    default:
      return caller satisfies never
  }
}
