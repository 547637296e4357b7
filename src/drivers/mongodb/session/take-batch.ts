// The documents of a batch as they lie in the server's answer. Asked for its documents, the client library makes an object
// of each and of each of their fields, some 2 kB a document that live as long as the batch, and gives back the same bytes;
// so the batch is taken whole. Where it is kept is the library's own affair: its version is pinned, tests fail with another.

interface Held {
  readonly batch: { toBytes(): unknown }
  clear(): void
}

/** Takes the batch at hand off a cursor: a BSON array. Throws TypeError where the library keeps it elsewhere. */
export function takeBatch(cursor: object): Uint8Array {
  const held: unknown = Reflect.get(cursor, 'documents')
  const bytes = isHeld(held) ? held.batch.toBytes() : null
  if (!isHeld(held) || !(bytes instanceof Uint8Array)) throw new TypeError('a cursor that keeps its batch elsewhere')
  held.clear()
  return bytes
}

function isHeld(value: unknown): value is Held {
  return hasMethod(value, 'clear') && 'batch' in value && hasMethod(value.batch, 'toBytes')
}

function hasMethod(value: unknown, name: string): value is object {
  return typeof value === 'object' && value !== null && typeof Reflect.get(value, name) === 'function'
}
