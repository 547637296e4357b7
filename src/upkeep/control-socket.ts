// Only one process can open the embedded store. So `vitrine backup` asks a running service for a copy, over a socket in
// the data folder, which only the folder's owner may enter.
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { z } from 'zod'

const Request = z.strictObject({ copyTo: z.string().startsWith('/') })
const Reply = z.union([z.strictObject({ done: z.literal(true) }), z.strictObject({ error: z.string() })])

const REQUEST_BYTES = 8_192
/** Every system accepts paths of this length. */
const PATH_MAX = 100

function socketPath(dataDir: string): string {
  return join(dataDir, 'control.sock')
}

/**
 * Listens until disposed. Null if the path is too long for a socket, or if the file system does not support sockets.
 */
export async function openControl(
  dataDir: string,
  copyTo: (path: string) => Promise<void>,
): Promise<AsyncDisposable | null> {
  const path = socketPath(dataDir)
  if (path.length > PATH_MAX) return null
  // A leftover of an earlier process: we hold the lock of the store, so no other process uses this folder.
  await rm(path, { force: true })
  const server = createServer({ allowHalfOpen: true }, (socket) => void answer(socket, copyTo))
  server.maxConnections = 4
  server.listen(path)
  try {
    await once(server, 'listening')
  } catch {
    return null
  }
  return {
    async [Symbol.asyncDispose]() {
      server.close()
      await once(server, 'close')
    },
  }
}

async function answer(socket: Socket, copyTo: (path: string) => Promise<void>): Promise<void> {
  socket.on('error', () => undefined)
  let asked = ''
  try {
    for await (const chunk of socket) {
      asked += String(chunk)
      if (asked.length > REQUEST_BYTES) return void socket.destroy()
    }
    await copyTo(Request.parse(JSON.parse(asked)).copyTo)
    socket.end(JSON.stringify({ done: true }))
  } catch (error) {
    socket.end(JSON.stringify({ error: error instanceof Error ? error.message : String(error) }))
  }
}

/** Returns false if no service runs on this data folder. Throws the error that the service reports. */
export async function askForCopy(dataDir: string, path: string): Promise<boolean> {
  const socket = connect({ path: socketPath(dataDir), allowHalfOpen: true })
  try {
    await once(socket, 'connect')
  } catch {
    return false
  }
  socket.end(JSON.stringify({ copyTo: path }))
  const reply = Reply.parse(JSON.parse(await text(socket)))
  if ('error' in reply) throw new Error(`The service could not write the copy: ${reply.error}`)
  return true
}
