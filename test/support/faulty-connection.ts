// A relay to a server. A test can make it silent, let it reset connections, or let it pass on answers byte by byte.
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

/**
 * silent: no byte of the server arrives. trickling: the bytes of the server arrive one at a time. resetting: open and
 * new connections end with RST.
 */
export type Way = 'good' | 'silent' | 'trickling' | 'resetting'

export interface FaultyWay extends AsyncDisposable {
  readonly port: number
  /** Changes the behaviour of open and new connections. */
  become(way: Way): void
  /** The number of bytes of the server that were not passed on yet. */
  readonly waiting: number
}

const TRICKLE_MS = 50

export async function startFaultyWay(to: { readonly host: string; readonly port: number }): Promise<FaultyWay> {
  let way: Way = 'good'
  const pairs = new Set<Pair>()
  const server = createServer((near) => {
    if (way === 'resetting') return near.resetAndDestroy()
    const pair = new Pair(near, connect(to.port, to.host), () => way)
    pairs.add(pair)
    near.on('close', () => pairs.delete(pair))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const trickle = setInterval(() => {
    if (way === 'trickling') for (const pair of pairs) pair.drip()
  }, TRICKLE_MS)
  const address = server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    become(next) {
      way = next
      for (const pair of pairs) pair.became(next)
    },
    get waiting() {
      return [...pairs].reduce((sum, pair) => sum + pair.held.length, 0)
    },
    async [Symbol.asyncDispose]() {
      clearInterval(trickle)
      for (const pair of pairs) pair.end()
      server.close()
      await once(server, 'close')
    },
  }
}

class Pair {
  readonly #near: Socket
  readonly #far: Socket
  held: Buffer = Buffer.alloc(0)

  constructor(near: Socket, far: Socket, way: () => Way) {
    this.#near = near
    this.#far = far
    for (const socket of [near, far]) socket.on('error', () => undefined)
    near.on('close', () => far.destroy())
    far.on('close', () => near.destroy())
    near.on('data', (bytes) => far.write(bytes))
    far.on('data', (bytes) => {
      if (way() === 'good') near.write(bytes)
      else this.held = Buffer.concat([this.held, bytes])
    })
  }

  drip(): void {
    if (this.held.length === 0) return
    this.#near.write(this.held.subarray(0, 1))
    this.held = this.held.subarray(1)
  }

  became(way: Way): void {
    if (way === 'resetting') this.#near.resetAndDestroy()
    if (way === 'good' && this.held.length > 0) {
      this.#near.write(this.held)
      this.held = Buffer.alloc(0)
    }
  }

  end(): void {
    this.#near.destroy()
    this.#far.destroy()
  }
}
