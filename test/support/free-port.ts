// Finds a free port for programs that cannot choose one themselves.
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * Systems assign higher ports to port 0 and to outgoing connections. So the system does not assign a port of this range
 * before the program takes it.
 */
const [FIRST, LAST] = [20_000, 32_000]

export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST, LAST)
    const server = createServer().listen(port, '127.0.0.1')
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false,
    )
    if (!isFree) continue
    server.close()
    await once(server, 'close')
    return port
  }
}
