// Counts the bytes of answers that are in memory until the client has read them, and that are given to its socket in
// slices. The socket itself knows only of the slices that it has.
import type { Socket } from 'node:net'
import type { FastifyReply } from 'fastify'

const held = new WeakMap<Socket, number>()

/** Counts the bytes until the whole answer is sent, or the socket ends, because all of them stay in memory until then. */
export function holdBytes(reply: FastifyReply, bytes: number): void {
  const { socket } = reply.request.raw
  held.set(socket, heldBytesOf(socket) + bytes)
  reply.raw.once('close', () => held.set(socket, heldBytesOf(socket) - bytes))
}

export function heldBytesOf(socket: Socket): number {
  return held.get(socket) ?? 0
}
