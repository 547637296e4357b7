// Reads the text before the parser: replaces comments by spaces, counts tokens, and refuses texts that would slow the
// parser down or overflow its stack. To find the end of an operator, PostgreSQL's scanner reads the whole run of
// operator characters, and reads it again for the next operator. For `/**//**/…` or `+-+-…`, this takes time quadratic
// in the length of the run. Without comments, and with short runs, it takes linear time (bounds.test.ts).
import { Scanner, type TokenKind } from './scanner.ts'

export const TOKENS_MAX = 20_000
/** Documented in docs/guard/postgres.md. The parser itself gets no comments. */
const COMMENTS_MAX = 8
/** The limit on a run of operator characters. The name of an operator has at most 63 (NAMEDATALEN - 1). */
const OPERATOR_RUN_MAX = 63
/**
 * The maximum depth: open parentheses, brackets and CASEs, plus the operators of their chains (`a + b + c`). A parser's
 * stack in a worker was tested with this depth. The deepest real query has about 80.
 */
export const DEPTH_MAX = 1_600

export type Prescan =
  /** In `text`, comments are spaces, so that positions are those of the caller's text. */
  | { readonly kind: 'fine'; readonly text: string; readonly tokens: number; readonly depth: number }
  | { readonly kind: 'malformed'; readonly why: string; readonly at: number }
  | { readonly kind: 'deep'; readonly at: number }
  | { readonly kind: 'many'; readonly tokens: number }

/** Scans a text before the parser does. Takes time linear in its length. */
export function prescan(text: string): Prescan {
  const scanner = new Scanner(text)
  const comments = new Comments(text)
  const depths = new Depths()
  let run = 0
  while (scanner.next()) {
    const { kind, start } = scanner
    if (kind === 'space') {
      run = 0
      continue
    }
    if (kind === 'line comment' || kind === 'block comment') {
      if (kind === 'block comment' && scanner.nested > COMMENTS_MAX) {
        return { kind: 'malformed', why: 'comments are nested too deep', at: start }
      }
      if (scanner.isOpen) return { kind: 'malformed', why: 'unterminated /* comment', at: start }
      comments.add(kind, start, scanner.end)
      run = 0
      continue
    }
    comments.before(scanner)
    for (let n = 0; n < scanner.inside.length; n += 2)
      comments.add('line comment', scanner.inside[n] ?? 0, scanner.inside[n + 1] ?? 0)
    run = scanner.isOperator() ? run + scanner.end - start : 0
    if (run > OPERATOR_RUN_MAX) return { kind: 'malformed', why: 'operator too long', at: start }
    if (kind === 'word') depths.word(text, start, scanner.end)
    else if (kind === 'sign') depths.sign(text.charCodeAt(start), scanner.isOperator() || text.startsWith('::', start))
    else depths.tokens += 1
    if (depths.depth > DEPTH_MAX) return { kind: 'deep', at: start }
  }
  if (depths.tokens > TOKENS_MAX) return { kind: 'many', tokens: depths.tokens }
  return { kind: 'fine', text: comments.blanked(), tokens: depths.tokens, depth: depths.deepest }
}

/** Replaces each comment by spaces of the same length. */
class Comments {
  readonly #text: string
  readonly #parts: string[] = []
  /** The text up to this position is in #parts. */
  #done = 0
  #isBehindString = false
  /** The index in #parts of the first block comment after a string, or -1. */
  #mark = -1

  constructor(text: string) {
    this.#text = text
  }

  add(kind: TokenKind, start: number, end: number): void {
    this.#parts.push(this.#text.slice(this.#done, start))
    if (kind === 'block comment' && this.#isBehindString && this.#mark < 0) this.#mark = this.#parts.length
    this.#parts.push(' '.repeat(end - start))
    this.#done = end
  }

  /**
   * PostgreSQL joins two strings if only a line break is between them, but not if a block comment is there too. So an
   * empty comment must stay between them.
   */
  before({ kind, start }: Scanner): void {
    const isString = kind === 'string'
    const kept = this.#parts[this.#mark]
    if (isString && kept !== undefined && this.#text[start] === "'") this.#parts[this.#mark] = `/**/${kept.slice(4)}`
    this.#isBehindString = isString
    this.#mark = -1
  }

  blanked(): string {
    return this.#done === 0 ? this.#text : this.#parts.join('') + this.#text.slice(this.#done)
  }
}

/**
 * What a word does to the depth. `enter` begins a level, and `leave` ends it. `chain` adds an operator to the chain of
 * the level, and `flat` ends the chain. `long` adds to a chain that no comma ends.
 */
const WORDS: ReadonlyMap<string, Change> = new Map([
  ...words('chain', 'NOT IS ISNULL NOTNULL IN LIKE ILIKE SIMILAR BETWEEN COLLATE AT OVERLAPS'),
  ...words('long', 'UNION INTERSECT EXCEPT JOIN'),
  ...words('enter', 'CASE'),
  ...words('leave', 'END'),
  ...words('flat', 'AND OR WHEN THEN ELSE SELECT FROM WHERE AS'),
])

type Change = 'chain' | 'long' | 'enter' | 'leave' | 'flat'

function words(kind: Change, list: string): [string, Change][] {
  return list.split(' ').map((word) => [word, kind])
}

const WORD_LENGTH_MAX = 'INTERSECT'.length

const [OPEN, CLOSE, COMMA, SEMICOLON, OPEN_BRACKET, CLOSE_BRACKET] = [0x28, 0x29, 0x2c, 0x3b, 0x5b, 0x5d]

/** A level of parentheses, brackets or CASE, and the lengths of its chains. */
interface Open {
  chain: number
  long: number
}

class Depths {
  tokens = 0
  /** The sum over all open levels. */
  depth = 0
  deepest = 0
  readonly #open: Open[] = []
  #top: Open = { chain: 0, long: 0 }

  word(text: string, start: number, end: number): void {
    this.tokens += 1
    if (end - start > WORD_LENGTH_MAX) return
    switch (WORDS.get(text.slice(start, end).toUpperCase())) {
      case 'chain':
        this.#chain()
        break
      case 'long':
        // The word ends the chain of operators before it.
        this.#flatten()
        this.#top.long += 1
        this.#deeper(1)
        break
      case 'enter':
        this.#enter()
        break
      case 'leave':
        this.#leave()
        break
      case 'flat':
        this.#flatten()
        break
      case undefined:
        break
    }
  }

  /** `code` is the first character of the sign. */
  sign(code: number, isOperator: boolean): void {
    this.tokens += 1
    if (code === OPEN || code === OPEN_BRACKET) this.#enter()
    else if (code === CLOSE || code === CLOSE_BRACKET) this.#leave()
    else if (code === COMMA || code === SEMICOLON) this.#flatten()
    else if (isOperator) this.#chain()
  }

  #deeper(levels: number): void {
    this.depth += levels
    if (this.depth > this.deepest) this.deepest = this.depth
  }

  #chain(): void {
    this.#top.chain += 1
    this.#deeper(1)
  }

  #flatten(): void {
    this.depth -= this.#top.chain
    this.#top.chain = 0
  }

  #enter(): void {
    this.#open.push(this.#top)
    this.#top = { chain: 0, long: 0 }
    this.#deeper(1)
  }

  #leave(): void {
    const around = this.#open.pop()
    if (!around) return
    this.depth -= 1 + this.#top.chain + this.#top.long
    this.#top = around
  }
}
