// Converts the editor's content to the body of a query. SQL is sent unchanged. For MongoDB, the editor contains the
// JSON of the body.
import type { Datasource } from '../../api/types.ts'

export type Kind = Datasource['type']

interface SqlBody {
  readonly sql: string
}
interface MongoBody {
  readonly collection: string
}
export type Body = SqlBody | MongoBody

/** The body, or `problem`, the reason why the editor's text is not a valid body yet. */
export type Written =
  | { readonly kind: 'empty' }
  | { readonly kind: 'problem'; readonly problem: string }
  | { readonly kind: 'body'; readonly body: Body }

export function bodyOf(kind: Kind, text: string): Written {
  if (text.trim() === '') return { kind: 'empty' }
  if (kind !== 'MONGODB') return { kind: 'body', body: { sql: text } }
  try {
    const value: MongoBody | null = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { kind: 'body', body: value }
    return { kind: 'problem', problem: 'Write an object with collection, and filter or pipeline.' }
  } catch (error) {
    return { kind: 'problem', problem: error instanceof Error ? error.message : 'This is not valid JSON.' }
  }
}

/** The initial content of the editor. */
export const STARTER: Readonly<Record<Kind, string>> = {
  POSTGRES: '',
  BIGQUERY: '',
  MONGODB: '{\n  "collection": "",\n  "pipeline": [\n    { "$limit": 20 }\n  ]\n}',
}

export interface Span {
  readonly from: number
  readonly to: number
}

/** Returns the token at a refusal's position in the editor's text, or null if the position is not in the text. */
export function spanAt(kind: Kind, text: string, position: number | undefined): Span | null {
  if (position === undefined) return null
  const from = kind === 'MONGODB' ? placeInJson(text, position) : position
  if (from === null || from < 0 || from >= text.length) return null
  const [word] = /^(?:[\p{L}\p{N}_$]+|"(?:[^"\\]|\\.)*"|.)/su.exec(text.slice(from)) ?? ['']
  return { from, to: from + Math.max(1, word.length) }
}

/**
 * Maps a MongoDB position to the editor's text. The position refers to the shortest JSON of the body. Returns null if
 * the editor's text differs from this JSON in more than white space.
 */
function placeInJson(text: string, position: number): number | null {
  const places = tokenPlaces(text)
  const short = places.map((at) => text[at]).join('')
  return short === JSON.stringify(JSON.parse(text)) ? (places[position] ?? null) : null
}

/** Returns the indexes of all characters except white space between tokens. */
function tokenPlaces(text: string): readonly number[] {
  const found: number[] = []
  let quoted = false
  for (let at = 0; at < text.length; at++) {
    const character = text.charAt(at)
    if (quoted && character === '\\') found.push(at++)
    else if (character === '"') quoted = !quoted
    if (quoted || !/\s/.test(text.charAt(at))) found.push(at)
  }
  return found
}
