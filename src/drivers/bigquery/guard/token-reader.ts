// The tokens of a query, and the position of the parser. This file contains no grammar.
import { Malformed, refusedLimit, shown } from './refusal.ts'
import { isName, type Token } from './tokens.ts'
import type { Work } from './work-budget.ts'

const DEPTH_MAX = 64

export interface Reader {
  readonly tokens: readonly Token[]
  readonly work: Work
  at: number
  depth: number
}

export function peek(reader: Reader, ahead = 0): Token | undefined {
  return reader.tokens[reader.at + ahead]
}

/** Returns the keyword or sign that comes next, or `ahead` tokens later. Returns '' for other tokens and at the end. */
export function key(reader: Reader, ahead = 0): string {
  return reader.tokens[reader.at + ahead]?.key ?? ''
}

export function take(reader: Reader): Token {
  const token = reader.tokens[reader.at]
  if (token === undefined) throw unexpected(reader)
  reader.work.spend(1)
  reader.at += 1
  return token
}

/** Reads a word or sign. Throws Malformed if another token comes next. */
export function expect(reader: Reader, wanted: string): Token {
  if (key(reader) !== wanted) throw unexpected(reader, `${wanted} is missing`)
  return take(reader)
}

export function takeName(reader: Reader): Token {
  const token = peek(reader)
  if (token === undefined || !isName(token)) throw unexpected(reader, 'a name is missing')
  return take(reader)
}

/** Reads tokens as long as they are one of the words. */
export function takeWords(reader: Reader, words: readonly string[]): Token[] {
  const taken: Token[] = []
  while (words.includes(key(reader))) taken.push(take(reader))
  return taken
}

/** The parser is recursive, so its depth is limited. Throws Refusal if it becomes too deep. */
export function withDepth<T>(reader: Reader, inside: () => T): T {
  reader.depth += 1
  if (reader.depth > DEPTH_MAX) {
    const why = `the query is nested ${reader.depth} levels deep, more than the bound of ${DEPTH_MAX}`
    throw refusedLimit(
      'depth',
      why,
      peek(reader)?.at ?? 0,
      'Name the inner queries in WITH, and leave out needless parentheses.',
    )
  }
  const made = inside()
  reader.depth -= 1
  return made
}

export function unexpected(reader: Reader, why?: string): Malformed {
  const token = peek(reader)
  const what = token === undefined ? 'the text ends too early' : `unexpected ${shown(token.text)}`
  return new Malformed(why === undefined ? what : `${what}: ${why}`, token?.at ?? reader.tokens.at(-1)?.end ?? 0)
}
