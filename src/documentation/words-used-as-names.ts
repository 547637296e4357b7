// Finds words that a text uses as names of database objects: in quotes, with dots, after FROM or JOIN, or next to a
// word like “table”. Takes linear time.
import { plainOf } from './split-words.ts'

const LETTER = String.raw`[\p{L}\p{M}\p{N}_]`
/** The lookbehind allows a match only at the start of a word. Trying each letter would take quadratic time. */
const WORD = `(?<!${LETTER})${LETTER}+`

/**
 * Each pattern captures a name, or several names joined by dots. There is no pattern for typographic quotation marks,
 * because write-by-rules.ts puts values between them, and none for single quotes, because they often mean emphasis.
 */
const PLACES: readonly RegExp[] = [
  // `wages`, "wages", [wages]
  /(?<=[`"[])([^`"[\]\n]{1,200})(?=[`"\]])/gu,
  // public.wages, wages.amount
  new RegExp(String.raw`(${WORD}(?:\.${WORD})+)`, 'gu'),
  // Lower case (`from wages`) counts only if the text contains a query (IN_QUERY).
  new RegExp(String.raw`\b(?:FROM|JOIN)\s+(${WORD})`, 'gu'),
  new RegExp(String.raw`(${WORD})\s+(?:table|view|collection)s?\b`, 'giu'),
  new RegExp(String.raw`\b(?:table|view|collection)s?\s+(${WORD})`, 'giu'),
]
const IN_QUERY = new RegExp(String.raw`\b(?:from|join)\s+(${WORD})`, 'giu')
const QUERY = /\bselect\b/iu

/** Returns the names in lower case, perhaps with duplicates. Returns `public.wages` as a whole and in parts. */
export function identifiersOf(text: string): readonly string[] {
  const plain = plainOf(text)
  const places = QUERY.test(plain) ? [...PLACES, IN_QUERY] : PLACES
  return places
    .flatMap((place) => [...plain.matchAll(place)].map((match) => (match[1] ?? '').toLowerCase()))
    .flatMap((name) => [name, ...(name.includes('.') ? name.split('.') : [])])
}
