// The places of a text where a plain word stands as the name of something in a database, and not for its own sake: quoted,
// dotted, behind FROM or JOIN, or beside “table”. Linear in the text.
import { plainOf } from './words.ts'

const LETTER = String.raw`[\p{L}\p{M}\p{N}_]`
/** From its beginning, so that none is tried from each of its letters. */
const WORD = `(?<!${LETTER})${LETTER}+`

/**
 * What each finds is the name, or several joined by dots. In the typographic quotation marks stand values (rules.ts), and
 * in single ones what people stress: neither is a name.
 */
const PLACES: readonly RegExp[] = [
  // `wages`, "wages", [wages]
  /(?<=[`"[])([^`"[\]\n]{1,200})(?=[`"\]])/gu,
  // public.wages, wages.amount
  new RegExp(String.raw`(${WORD}(?:\.${WORD})+)`, 'gu'),
  // As SQL is written; in small letters only where it is a query.
  new RegExp(String.raw`\b(?:FROM|JOIN)\s+(${WORD})`, 'gu'),
  new RegExp(String.raw`(${WORD})\s+(?:table|view|collection)s?\b`, 'giu'),
  new RegExp(String.raw`\b(?:table|view|collection)s?\s+(${WORD})`, 'giu'),
]
const IN_QUERY = new RegExp(String.raw`\b(?:from|join)\s+(${WORD})`, 'giu')
const QUERY = /\bselect\b/iu

/** In small letters, each as it stands and by its parts; some more than once. */
export function identifiersOf(text: string): readonly string[] {
  const plain = plainOf(text)
  const places = QUERY.test(plain) ? [...PLACES, IN_QUERY] : PLACES
  return places
    .flatMap((place) => [...plain.matchAll(place)].map((match) => (match[1] ?? '').toLowerCase()))
    .flatMap((name) => [name, ...(name.includes('.') ? name.split('.') : [])])
}
