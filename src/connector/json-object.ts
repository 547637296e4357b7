export type JsonObject = Readonly<Record<string, unknown>>

/** Returns false for null and arrays. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
