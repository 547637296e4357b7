// Finds where a text uses an ordinary word as the name of a database object: in quotes, with dots, after FROM or JOIN,
// or next to a word like “table”. The time is linear in the length of the text.
import { plainOf } from './split-words.ts'

const LETTER = String.raw`[\p{L}\p{M}\p{N}_]`
/** The lookbehind makes a match start only at the start of a word. A start at each letter would take quadratic time. */
const WORD = `(?<!${LETTER})${LETTER}+`

/**
 * Each pattern captures a name, or several names joined by dots. Typographic quotation marks are no pattern, because
 * write-by-rules.ts puts values between them. Single quotes are no pattern either, because they often mean emphasis.
 */
const PLACES: readonly RegExp[] = [
  // `wages`, "wages", [wages]
  /(?<=[`"[])([^`"[\]\n]{1,200})(?=[`"\]])/gu,
  // public.wages, wages.amount
  new RegExp(String.raw`(${WORD}(?:\.${WORD})+)`, 'gu'),
  // `from wages` in lower case counts only if the text contains a query (IN_QUERY).
  new RegExp(String.raw`\b(?:FROM|JOIN)\s+(${WORD})`, 'gu'),
  new RegExp(String.raw`(${WORD})\s+(?:table|view|collection)s?\b`, 'giu'),
  new RegExp(String.raw`\b(?:table|view|collection)s?\s+(${WORD})`, 'giu'),
]
const IN_QUERY = new RegExp(String.raw`\b(?:from|join)\s+(${WORD})`, 'giu')
const QUERY = /\bselect\b/iu

/** Returns the names in lower case. `public.wages` is returned as a whole and in its parts. May contain duplicates. */
export function identifiersOf(text: string): readonly string[] {
  const plain = plainOf(text)
  const places = QUERY.test(plain) ? [...PLACES, IN_QUERY] : PLACES
  return places
    .flatMap((place) => [...plain.matchAll(place)].map((match) => (match[1] ?? '').toLowerCase()))
    .flatMap((name) => [name, ...(name.includes('.') ? name.split('.') : [])])
}
