// Reads fields of JSON values whose shape is not known yet.

export type JsonObject = Readonly<Record<string, unknown>>

/** Returns true for a JSON object: not null and not an array. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
