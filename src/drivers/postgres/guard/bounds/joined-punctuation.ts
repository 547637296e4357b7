// Tells which functions may join the punctuation of a stored text to long runs, by leaving out letters between. glibc
// compares long runs in quadratic time (docs/guard/postgres.md). A function that makes a text and that is not listed
// here counts as one that joins.
import { MAKES_TEXT } from '../allowed/allowed-functions.ts'
import type { Node } from '../allowed/allowed-nodes.ts'
import { literalText } from './argument-bounds.ts'

/** Which characters the runs may have: only spaces, only white space, or any punctuation. */
export type Joined = ' ' | '\\s' | 'any'

/** Functions of MAKES_TEXT that keep the letters between runs, return parts of a text, or return no text. */
const APART: ReadonlySet<string> = new Set(
  `
  ascii bit_length btrim casefold char_length character_length chr concat concat_ws format initcap is_normalized left
  length lower lpad ltrim md5 octet_length overlay parse_ident position quote_ident quote_literal quote_nullable
  regexp_count regexp_instr regexp_like regexp_match regexp_matches regexp_split_to_table regexp_substr repeat reverse
  right rpad rtrim split_part starts_with strpos substr substring to_bin to_hex to_oct unicode_assigned upper
  like_escape text varchar bpchar textlen
  bit_count crc32 crc32c encode get_bit get_byte sha224 sha256 sha384 sha512
  to_json to_jsonb array_to_json row_to_json json_build_array jsonb_build_array json_build_object jsonb_build_object
  json_object jsonb_object json_array_elements jsonb_array_elements json_array_elements_text
  jsonb_array_elements_text json_array_length jsonb_array_length json_each jsonb_each json_each_text jsonb_each_text
  json_extract_path jsonb_extract_path json_extract_path_text jsonb_extract_path_text json_object_keys
  jsonb_object_keys json_to_record jsonb_to_record json_to_recordset jsonb_to_recordset jsonb_concat
  jsonb_path_exists jsonb_path_match jsonb_path_query jsonb_path_query_first jsonb_path_exists_tz
  jsonb_path_match_tz jsonb_path_query_tz jsonb_path_query_first_tz json_typeof jsonb_typeof jsonb_contains
  jsonb_exists jsonb_exists_any jsonb_exists_all jsonb_contained
  json_populate_record jsonb_populate_record json_populate_recordset jsonb_populate_recordset
  array_append array_cat array_dims array_fill array_length array_lower array_ndims array_position array_positions
  array_prepend array_reverse array_to_string array_upper cardinality trim_array unnest generate_subscripts
  generate_series
  array_to_tsvector numnode plainto_tsquery phraseto_tsquery websearch_to_tsquery querytree setweight strip to_tsquery
  to_tsvector json_to_tsvector jsonb_to_tsvector ts_rank ts_rank_cd tsquery_phrase tsvector_to_array

  hstore_to_json_loose hstore_to_jsonb_loose hstore_to_array hstore_to_matrix`
    .trim()
    .split(/\s+/),
)

/** Returns which runs a call may make of the punctuation of a stored text, or undefined if it makes none. */
export function joinedBy(name: string, args: readonly Node[]): Joined | undefined {
  const [, from, to] = args
  if (APART.has(name) || !MAKES_TEXT.has(name)) return undefined
  switch (name) {
    case 'replace':
      return hasNoLetter(from) || hasLetter(to) ? undefined : 'any'
    case 'translate':
      return keepsLetters(from, to) ? undefined : 'any'
    case 'string_to_array':
    case 'string_to_table':
      return (from?.A_Const?.isnull || hasNoLetter(from)) && (!to || hasNoLetter(to)) ? undefined : 'any'
    case 'regexp_split_to_array':
      return matchesNoLetter(from) ? undefined : 'any'
    case 'regexp_replace':
      return replaced(args)
    default:
      return 'any'
  }
}

/** Returns the runs that are left after a text is split. */
export function afterSplit(joined: Joined | undefined, name: string, separator: Node | undefined): Joined | undefined {
  const text = (separator && literalText(separator)) ?? ''
  const isPattern = name.startsWith('regexp_split')
  const splitsAll = isPattern && /^(?:\\s|\[\[:space:\]\])\+?$/.test(text)
  const splitsSpaces = isPattern ? /^ \+?$/.test(text) : /^string_to_(?:array|table)$/.test(name) && text === ' '
  if (splitsAll) return joined === 'any' ? joined : undefined
  return splitsSpaces && joined === ' ' ? undefined : joined
}

/** Letters that glibc compares in linear time. Modifier letters and combining marks are like punctuation. */
const LETTER = /[\p{Lu}\p{Ll}\p{Lt}\p{Lo}0-9]/u
export const NO_LETTERS = /[^\p{Lu}\p{Ll}\p{Lt}\p{Lo}0-9]+/gu
/** Digits of other scripts: glibc compares 1,000 of U+0967 in 0.7 s. */
export const SLOW_DIGIT = /[^\P{N}0-9]/u

function hasLetter(node: Node | undefined): boolean {
  return LETTER.test((node && literalText(node)) ?? '')
}

function hasNoLetter(node: Node | undefined): boolean {
  const text = node && literalText(node)
  return text !== undefined && !LETTER.test(text)
}

/** Returns whether translate() keeps each letter, or puts another letter in its place. */
function keepsLetters(from: Node | undefined, to: Node | undefined): boolean {
  const letters = from && literalText(from)
  const others = [...((to && literalText(to)) ?? '')]
  return (
    letters !== undefined && [...letters].every((letter, at) => !LETTER.test(letter) || LETTER.test(others[at] ?? ''))
  )
}

function replaced(args: readonly Node[]): Joined | undefined {
  const [, pattern, by, flags] = args
  // A single match joins two runs at most.
  const options = args.length === 4 ? flags && literalText(flags) : undefined
  if (args.length === 3 || (options !== undefined && !options.includes('g'))) return undefined
  if (matchesNoLetter(pattern)) return undefined
  const put = by && literalText(by)
  if (put !== undefined && LETTER.test(put.replaceAll(/\\./g, ''))) return undefined
  const [, kept, times] = /^\[\^((?:[^\][\\]|\\.|\[:\w+:\])+)\]([+*]?)$/.exec(patternOf(pattern)) ?? []
  if (kept === undefined || options === undefined || !/^[gi]+$/.test(options)) return 'any'
  if (/\\w|\[:alnum:\]/.test(kept)) return undefined
  const others = kept.replaceAll(LETTERS, '')
  if (others === '' && (put === '' || times === '+')) return undefined
  if (put === undefined || !/^ *$/.test(put)) return 'any'
  if (/^ *$/.test(others)) return ' '
  return /^(?: |\\s|\[:space:\])+$/.test(others) ? '\\s' : 'any'
}

/** Matches what stands for letters and digits in a class of a pattern. A-z has punctuation, too. */
const LETTERS =
  /\[:(?:alpha|digit|lower|upper):\]|\\d|[a-z]-[a-z]|[A-Z]-[A-Z]|[0-9]-[0-9]|[\p{Lu}\p{Ll}\p{Lt}\p{Lo}0-9]/gu

function patternOf(pattern: Node | undefined): string {
  return ((pattern && literalText(pattern)) ?? '.').replace(/^\\D/, '[^0-9]')
}

/** Returns whether a pattern is known to match no letter and no digit. */
function matchesNoLetter(pattern: Node | undefined): boolean {
  const plain = patternOf(pattern)
    .replaceAll(/\[:(?:punct|space|blank):\]|\\[sW]|\\[^\p{L}\p{N}]/gu, ' ')
    .replaceAll(/\{[\d,]+\}/g, '')
  // A range such as [!-~] and a class such as [^,] have letters.
  return !LETTER.test(plain) && !/\.|\[\^|\(\?|[^[]-[^\]]/.test(plain)
}
