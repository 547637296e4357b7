// The JSON of a prebuilt answer may be in several parts. Callers that cannot send the parts one by one join them here.
import type { LentJson, Prebuilt } from './operation-types.ts'

export function isLent(json: Prebuilt['json']): json is LentJson {
  return typeof json === 'object' && 'parts' in json
}

/** Releases borrowed memory. */
export function textOfJson(json: Prebuilt['json']): string {
  const text = String(json)
  if (isLent(json)) json.release()
  return text
}

/** Copies the JSON to its own memory. Releases borrowed memory. */
export function ownJson(json: Prebuilt['json']): string | Buffer {
  if (!isLent(json)) return json
  const whole = Buffer.concat(json.parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)))
  json.release()
  return whole
}
