// The HTTP server of both floors, with node:http only. Prints its port, and stops on SIGTERM.
import { createServer } from 'node:http'

export function serveFloor(answer: (body: string) => Promise<string>, close: () => Promise<unknown>): void {
  const server = createServer((req, res) => {
    const parts: Buffer[] = []
    req.on('data', (part: Buffer) => parts.push(part))
    req.on('end', () => {
      answer(Buffer.concat(parts).toString()).then(
        (text) => res.writeHead(200, { 'content-type': 'application/json' }).end(text),
        (error: unknown) => res.writeHead(500).end(String(error)),
      )
    })
  })
  server.listen(0, '127.0.0.1', () => {
    const address = server.address()
    if (address !== null && typeof address !== 'string') console.log(address.port)
  })
  process.once('SIGTERM', () => {
    server.closeAllConnections()
    server.close()
    void close()
  })
}
