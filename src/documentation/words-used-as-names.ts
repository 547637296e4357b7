// Finds where a text uses a plain word as the name of a database object: quoted, dotted, after FROM or JOIN, or next to
// a word like “table”. Takes linear time.
import { plainOf } from './split-words.ts'

const LETTER = String.raw`[\p{L}\p{M}\p{N}_]`
/** Matches only from the start of a word. Trying each letter would take quadratic time. */
const WORD = `(?<!${LETTER})${LETTER}+`

/**
 * Each pattern captures a name, or several names joined by dots. Typographic quotation marks enclose values
 * (write-by-rules.ts) and single quotes mark emphasis, so neither marks a name.
 */
const PLACES: readonly RegExp[] = [
  // `wages`, "wages", [wages]
  /(?<=[`"[])([^`"[\]\n]{1,200})(?=[`"\]])/gu,
  // public.wages, wages.amount
  new RegExp(String.raw`(${WORD}(?:\.${WORD})+)`, 'gu'),
  // After SQL keywords. Lower case counts only if the text contains a query.
  new RegExp(String.raw`\b(?:FROM|JOIN)\s+(${WORD})`, 'gu'),
  new RegExp(String.raw`(${WORD})\s+(?:table|view|collection)s?\b`, 'giu'),
  new RegExp(String.raw`\b(?:table|view|collection)s?\s+(${WORD})`, 'giu'),
]
const IN_QUERY = new RegExp(String.raw`\b(?:from|join)\s+(${WORD})`, 'giu')
const QUERY = /\bselect\b/iu

/** Returns the names in lower case, whole and split at dots. May contain duplicates. */
export function identifiersOf(text: string): readonly string[] {
  const plain = plainOf(text)
  const places = QUERY.test(plain) ? [...PLACES, IN_QUERY] : PLACES
  return places
    .flatMap((place) => [...plain.matchAll(place)].map((match) => (match[1] ?? '').toLowerCase()))
    .flatMap((name) => [name, ...(name.includes('.') ? name.split('.') : [])])
}
