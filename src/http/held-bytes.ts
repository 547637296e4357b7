// Counts the bytes of answers that are in memory until the client has read them, and that are given to its socket in
// slices. The socket itself knows only of the slices that it has.
import type { Socket } from 'node:net'
import type { FastifyReply } from 'fastify'

const held = new WeakMap<Socket, number>()

/**
 * Counts the bytes until the whole answer is sent, or the socket ends, because all of them stay in memory until then.
 * Then calls `release`.
 */
export function holdBytes(reply: FastifyReply, bytes: number, release: () => void = () => undefined): void {
  const { socket } = reply.request.raw
  held.set(socket, heldBytesOf(socket) + bytes)
  // 'close' comes after the last write, or when the socket ends.
  reply.raw.once('close', () => {
    held.set(socket, heldBytesOf(socket) - bytes)
    release()
  })
}

export function heldBytesOf(socket: Socket): number {
  return held.get(socket) ?? 0
}
