// For callers that cannot send the parts of a prebuilt answer one by one.
import type { LentJson, Prebuilt } from './operation-types.ts'

export function isLent(json: Prebuilt['json']): json is LentJson {
  return typeof json === 'object' && 'parts' in json
}

/** Joins the parts to a string. Releases borrowed memory. */
export function textOfJson(json: Prebuilt['json']): string {
  const text = String(json)
  if (isLent(json)) json.release()
  return text
}

/** Joins the parts in new memory. Releases borrowed memory. */
export function ownJson(json: Prebuilt['json']): string | Buffer {
  if (!isLent(json)) return json
  const whole = Buffer.concat(json.parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)))
  json.release()
  return whole
}
