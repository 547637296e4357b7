// Takes a whole batch of documents from a cursor, as the bytes of the server's answer. The client library would create
// an object for each document and each field, about 2 kB per document. The batch is in an internal property of the
// library, so its version is pinned, and tests fail with another version.

interface Held {
  readonly batch: { toBytes(): unknown }
  clear(): void
}

/**
 * Removes the current batch, a BSON array, from the cursor. Throws TypeError if the library has the batch elsewhere.
 */
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
