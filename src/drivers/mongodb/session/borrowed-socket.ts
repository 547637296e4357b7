// A command through the client library takes more processor time than all other work for a small query. So small
// queries write their command directly to a socket that the library has opened and logged in. The library still finds
// the servers, and decides which server answers. This needs internal properties of the library, so its version is
// pinned, and tests fail with another version.
import { Duplex } from 'node:stream'
import type { Login } from './connect.ts'
import { Wire } from './wire.ts'

/**
 * After this time, the connection is given back, and the library selects a server again. The library checks the servers
 * at the same interval.
 */
const LOAN_MS = 10_000

export interface Loan {
  readonly wire: Wire
  /** The `$readPreference` of each command. Null if the server does not accept the field. */
  readonly readPreference: object | null
  readonly isDue: boolean
  /** Can be called once. A lost connection is closed. */
  giveBack(): void
}

/** Throws the errors of a library command, and TypeError for another version of the library. */
export async function borrow({ client, isDirect }: Login, signal: AbortSignal): Promise<Loan> {
  signal.throwIfAborted()
  const server = await call(part(client, 'topology'), 'selectServer', client.readPreference, {
    operationName: 'aggregate',
    deprioritizedServers: new Set(),
    signal,
  })
  const pool = part(server, 'pool')
  const timeoutContext = { connectionCheckoutTimeout: null, csotEnabled: () => false }
  const connection = asObject(await call(pool, 'checkOut', { timeoutContext, signal }), 'connections')
  try {
    signal.throwIfAborted()
    return taken(connection, () => call(pool, 'checkIn', connection), client.readPreference, isDirect)
  } catch (error) {
    call(pool, 'checkIn', connection)
    throw error
  }
}

function taken(
  connection: object,
  checkIn: () => unknown,
  preference: Login['client']['readPreference'],
  isDirect: boolean,
): Loan {
  const [socket, reader] = [part(connection, 'socket'), part(connection, 'messageStream')]
  if (!(socket instanceof Duplex) || !(reader instanceof Duplex)) throw otherLibrary('socket')
  const type: unknown = Reflect.get(part(connection, 'description'), 'type')
  socket.unpipe(reader)
  const wire = new Wire(socket)
  const due = performance.now() + LOAN_MS
  return {
    wire,
    readPreference: preferenceOf(type, preference, isDirect),
    get isDue() {
      return !wire.usable || performance.now() > due
    },
    giveBack() {
      if (wire.release()) socket.pipe(reader)
      else call(connection, 'destroy')
      checkIn()
    },
  }
}

/** Returns what the library would send. A server that is addressed directly may be a secondary. */
function preferenceOf(type: unknown, preference: Login['client']['readPreference'], isDirect: boolean): object | null {
  if (type === 'Standalone') return null
  if (preference.mode !== 'primary') return preference.toJSON()
  return isDirect && type !== 'Mongos' ? { mode: 'primaryPreferred' } : null
}

function part(of: unknown, name: string): object {
  return asObject(Reflect.get(asObject(of, name), name), name)
}

function asObject(value: unknown, name: string): object {
  if (typeof value !== 'object' || value === null) throw otherLibrary(name)
  return value
}

function call(of: object, name: string, ...args: readonly unknown[]): unknown {
  const method: unknown = Reflect.get(of, name)
  if (typeof method !== 'function') throw otherLibrary(name)
  return Reflect.apply(method, of, args)
}

function otherLibrary(name: string): TypeError {
  return new TypeError(`a client library without ${name}`)
}
