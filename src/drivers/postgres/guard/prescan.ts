// A look at the text before the parser gets it: comments nested deep make its scanner quadratic (100,000 of them: over
// a minute that no timeout ends), long chains and deep nesting overrun its stack. Decides nothing about names.

/** Comments inside comments. */
const COMMENTS_MAX = 8
/**
 * Operators in one chain and parentheses in parentheses, added up: what the parser's stack in a worker was tried with
 * (docs/decisions). The deepest real query has about 80.
 */
const DEPTH_MAX = 3_000

export type Prescan =
  | { readonly kind: 'fine'; readonly tokens: number; readonly depth: number }
  | { readonly kind: 'comments'; readonly at: number }
  | { readonly kind: 'deep'; readonly at: number }

/** How a word changes the depth: of a chain, of a chain that no comma ends, in, out, back to the chain's start. */
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

/** Reads quotes and comments as the parser's scanner does, and counts what its stack would have to hold. */
export function prescan(text: string): Prescan {
  const depths = new Depths()
  let at = 0
  while (at < text.length) {
    const code = text.charCodeAt(at)
    const start = at
    if (code <= SPACE) {
      at += 1
    } else if (isWordStart(code)) {
      at = wordEnd(text, at)
      const quote = at - start === 1 && (code | 0x20) === LETTER_E && text.charCodeAt(at) === QUOTE
      if (quote) at = quotedEnd(text, at, QUOTE, true)
      else if (at - start <= WORD_LENGTH_MAX) depths.word(text.slice(start, at))
      else depths.tokens += 1
    } else if (code === QUOTE || code === DOUBLE_QUOTE) {
      at = quotedEnd(text, at, code, false)
      depths.tokens += 1
    } else if (code === DASH && text.charCodeAt(at + 1) === DASH) {
      at = lineEnd(text, at)
    } else if (code === SLASH && text.charCodeAt(at + 1) === STAR) {
      const end = commentEnd(text, at)
      if (end === undefined) return { kind: 'comments', at }
      at = end
    } else if (code === DOLLAR) {
      at = dollarEnd(text, at)
      depths.tokens += 1
    } else {
      at = OPERATORS.has(code) ? operatorEnd(text, at) : at + 1
      depths.sign(code)
    }
    if (depths.depth > DEPTH_MAX) return { kind: 'deep', at: start }
  }
  return { kind: 'fine', tokens: depths.tokens, depth: depths.deepest }
}

const [SPACE, DOUBLE_QUOTE, DOLLAR, QUOTE] = [0x20, 0x22, 0x24, 0x27]
const [OPEN, CLOSE, STAR, COMMA, DASH, SLASH] = [0x28, 0x29, 0x2a, 0x2c, 0x2d, 0x2f]
const [SEMICOLON, OPEN_BRACKET, BACKSLASH, CLOSE_BRACKET, LETTER_E] = [0x3b, 0x5b, 0x5c, 0x5d, 0x65]
const OPERATORS: ReadonlySet<number> = new Set([...'-+*/<>=~!@#%^&|`?:'].map((sign) => sign.charCodeAt(0)))

/** One level of parentheses: how long its chains are by now. */
interface Open {
  chain: number
  long: number
}

class Depths {
  tokens = 0
  /** Of all levels that are open, and the most it has been. */
  depth = 0
  deepest = 0
  readonly #open: Open[] = []
  #top: Open = { chain: 0, long: 0 }

  word(word: string): void {
    this.tokens += 1
    switch (WORDS.get(word.toUpperCase())) {
      case 'chain':
        this.#chain()
        break
      case 'long':
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

  /** A sign by its first character. */
  sign(code: number): void {
    this.tokens += 1
    if (code === OPEN || code === OPEN_BRACKET) this.#enter()
    else if (code === CLOSE || code === CLOSE_BRACKET) this.#leave()
    else if (code === COMMA || code === SEMICOLON) this.#flatten()
    else if (OPERATORS.has(code)) this.#chain()
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

function isWordStart(code: number): boolean {
  return (code >= 0x61 && code <= 0x7a) || (code >= 0x41 && code <= 0x5a) || code === 0x5f || code >= 0x80
}

function wordEnd(text: string, from: number): number {
  let at = from + 1
  for (; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (!isWordStart(code) && !(code >= 0x30 && code <= 0x39) && code !== DOLLAR) break
  }
  return at
}

/** Behind the closing quote; a doubled quote is read as two texts, which comes to the same. */
function quotedEnd(text: string, from: number, quote: number, escapes: boolean): number {
  for (let at = from + 1; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === BACKSLASH && escapes) at += 1
    else if (code === quote) return at + 1
  }
  return text.length
}

function lineEnd(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 0x0a || code === 0x0d) return at
  }
  return text.length
}

/** Behind the comment's end; undefined where it nests too deep. An open one runs to the end of the text. */
function commentEnd(text: string, from: number): number | undefined {
  let depth = 0
  for (let at = from; at < text.length - 1; at++) {
    const pair = text.slice(at, at + 2)
    if (pair !== '/*' && pair !== '*/') continue
    depth += pair === '/*' ? 1 : -1
    if (depth > COMMENTS_MAX) return undefined
    if (depth === 0) return at + 2
    at += 1
  }
  return text.length
}

const DOLLAR_QUOTE = /\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$/y

function dollarEnd(text: string, from: number): number {
  DOLLAR_QUOTE.lastIndex = from
  const opening = DOLLAR_QUOTE.exec(text)?.[0]
  if (opening === undefined) return from + 1
  const end = text.indexOf(opening, from + opening.length)
  return end < 0 ? text.length : end + opening.length
}

/** An operator ends where a comment begins. */
function operatorEnd(text: string, from: number): number {
  let at = from + 1
  for (; at < text.length && OPERATORS.has(text.charCodeAt(at)); at++) {
    const pair = text.slice(at, at + 2)
    if (pair === '--' || pair === '/*') break
  }
  return at
}
