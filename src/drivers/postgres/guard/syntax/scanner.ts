// Splits a text into tokens like PostgreSQL's scanner (src/backend/parser/scan.l of PostgreSQL 18). It refuses no text:
// where the real scanner fails, the tokens are undefined. Each rule takes linear time. scanner.test.ts compares the
// tokens with those of libpg-query.

export type TokenKind =
  'space' | 'line comment' | 'block comment' | 'word' | 'quoted name' | 'string' | 'number' | 'parameter' | 'sign'

/** After next() returned true, the fields describe the next token. Positions are UTF-16 units. */
export class Scanner {
  readonly text: string
  kind: TokenKind = 'space'
  start = 0
  end = 0
  /** True if the closing quote or the end of the comment is missing. The token then ends with the text. */
  isOpen = false
  /** The depth of a block comment: 1 if it contains no other comment. */
  nested = 0
  /** The beginnings and ends of line comments between the parts of a string. */
  inside: readonly number[] = []
  /** The last run of operator characters, which may contain many operators. */
  #run: Run = { end: 0, lastOther: -1, lastNotOfSql: -1 }

  constructor(text: string) {
    this.text = text
  }

  next(): boolean {
    const { text } = this
    const at = this.end
    if (at >= text.length) return false
    this.start = at
    this.isOpen = false
    this.inside = NONE
    const code = text.charCodeAt(at)
    if (isSpace(code)) this.#take('space', spaceEnd(text, at))
    else if (isWordStart(code)) this.#wordOrString(code)
    else if (code === QUOTE) this.#string(at, PLAIN)
    else if (code === DOUBLE_QUOTE) this.#quotedName(at)
    else if (isDigit(code) || (code === DOT && isDigit(text.charCodeAt(at + 1)))) this.#number()
    else if (code === DOLLAR) this.#dollar()
    else if (OPERATORS.has(code)) this.#operator(code)
    else this.#take('sign', signEnd(text, at, code))
    return true
  }

  /** Returns whether the token consists of operator characters. */
  isOperator(): boolean {
    return OPERATORS.has(this.text.charCodeAt(this.start))
  }

  #take(kind: TokenKind, end: number): void {
    this.kind = kind
    this.end = end
  }

  /** Reads E'…', B'…', X'…', U&'…', U&"…" or a word. N'…' is the word N and a string, as in PostgreSQL. */
  #wordOrString(code: number): void {
    const { text, start } = this
    const letter = code | 0x20
    const following = text.charCodeAt(start + 1)
    if (following === QUOTE && letter === LETTER_E) this.#string(start + 1, ESCAPES)
    else if (following === QUOTE && (letter === LETTER_B || letter === LETTER_X)) this.#string(start + 1, BITS)
    else if (following === AMPERSAND && letter === LETTER_U && text.charCodeAt(start + 2) === QUOTE)
      this.#string(start + 2, PLAIN)
    else if (following === AMPERSAND && letter === LETTER_U && text.charCodeAt(start + 2) === DOUBLE_QUOTE)
      this.#quotedName(start + 2)
    else this.#take('word', wordEnd(text, start))
  }

  /** Reads a string with its continuations: two strings with only a line break in between are one token. */
  #string(quoteAt: number, mode: Mode): void {
    const { text } = this
    const comments: number[] = []
    let at = quoteAt
    while (true) {
      const end = stringEnd(text, at, mode)
      if (end < 0) {
        this.isOpen = true
        return this.#take('string', text.length)
      }
      const known = comments.length
      const next = continuation(text, end, comments)
      if (next < 0) {
        this.inside = comments.slice(0, known)
        return this.#take('string', end)
      }
      at = next
    }
  }

  #quotedName(quoteAt: number): void {
    const end = stringEnd(this.text, quoteAt, NAME)
    this.isOpen = end < 0
    this.#take('quoted name', end < 0 ? this.text.length : end)
  }

  #number(): void {
    NUMBER.lastIndex = this.start
    this.#take('number', this.start + (NUMBER.exec(this.text)?.[0].length ?? 1))
  }

  #dollar(): void {
    const { text, start } = this
    PARAMETER.lastIndex = start
    const parameter = PARAMETER.exec(text)?.[0]
    if (parameter !== undefined) return this.#take('parameter', start + parameter.length)
    DOLLAR_QUOTE.lastIndex = start
    const opening = DOLLAR_QUOTE.exec(text)?.[0]
    if (opening === undefined) return this.#take('sign', start + 1)
    const end = text.indexOf(opening, start + opening.length)
    this.isOpen = end < 0
    this.#take('string', end < 0 ? text.length : end + opening.length)
  }

  #operator(code: number): void {
    const { text, start } = this
    const following = text.charCodeAt(start + 1)
    if (code === DASH && following === DASH) return this.#take('line comment', lineEnd(text, start))
    if (code === SLASH && following === STAR) {
      const { end, deepest } = blockEnd(text, start)
      this.nested = deepest
      this.isOpen = end < 0
      return this.#take('block comment', end < 0 ? text.length : end)
    }
    if (start >= this.#run.end) this.#run = operatorRun(text, start)
    this.#take('sign', operatorEnd(this.#run, start))
  }
}

const NONE: readonly number[] = []
const [DOUBLE_QUOTE, DOLLAR, AMPERSAND, QUOTE, STAR] = [0x22, 0x24, 0x26, 0x27, 0x2a]
const [PLUS, DASH, DOT, SLASH, COLON, EQUALS, BACKSLASH] = [0x2b, 0x2d, 0x2e, 0x2f, 0x3a, 0x3d, 0x5c]
const [LETTER_B, LETTER_E, LETTER_U, LETTER_X] = [0x62, 0x65, 0x75, 0x78]

const codes = (signs: string): ReadonlySet<number> => new Set([...signs].map((sign) => sign.charCodeAt(0)))
const OPERATORS = codes('~!@#^&|`?+-*/%<>=')
/** Characters of no operator in standard SQL. Only an operator with one of them may end in + or -. */
const NOT_OF_SQL = codes('~!@#^&|`?%')

interface Mode {
  readonly quote: number
  /** True if two quotes stand for one. */
  readonly doubles: boolean
  readonly escapes: boolean
}
const PLAIN: Mode = { quote: QUOTE, doubles: true, escapes: false }
const ESCAPES: Mode = { quote: QUOTE, doubles: true, escapes: true }
const BITS: Mode = { quote: QUOTE, doubles: false, escapes: false }
const NAME: Mode = { quote: DOUBLE_QUOTE, doubles: true, escapes: false }

/** Returns the position after the closing quote, or -1 if there is none. */
function stringEnd(text: string, quoteAt: number, { quote, doubles, escapes }: Mode): number {
  for (let at = quoteAt + 1; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === BACKSLASH && escapes) at += 1
    else if (code !== quote) continue
    else if (doubles && text.charCodeAt(at + 1) === quote) at += 1
    else return at + 1
  }
  return -1
}

/**
 * Returns the position of the next quote, if only spaces, line breaks (at least one) and line comments are before it.
 * Otherwise returns -1. Adds the beginning and end of each line comment to `comments`.
 */
function continuation(text: string, from: number, comments: number[]): number {
  let hasBreak = false
  for (let at = from; at < text.length;) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) return hasBreak ? at : -1
    if (isSpace(code)) {
      hasBreak ||= isBreak(code)
      at += 1
    } else if (code === DASH && text.charCodeAt(at + 1) === DASH) {
      const end = lineEnd(text, at)
      comments.push(at, end)
      at = end
    } else return -1
  }
  return -1
}

function lineEnd(text: string, from: number): number {
  let at = from
  while (at < text.length && !isBreak(text.charCodeAt(at))) at += 1
  return at
}

/** Returns the end of the comment, or -1 if it is not closed, and its depth. */
function blockEnd(text: string, from: number): { readonly end: number; readonly deepest: number } {
  let depth = 1
  let deepest = 1
  for (let at = from + 2; at < text.length - 1; at++) {
    const [code, following] = [text.charCodeAt(at), text.charCodeAt(at + 1)]
    if (code === SLASH && following === STAR) depth += 1
    else if (code === STAR && following === SLASH) depth -= 1
    else continue
    at += 1
    deepest = Math.max(deepest, depth)
    if (depth === 0) return { end: at + 1, deepest }
  }
  return { end: -1, deepest }
}

/** A run of operator characters, which ends before a comment. Its fields decide where each operator in it ends. */
interface Run {
  readonly end: number
  /** The position of the last character that is neither + nor -. */
  readonly lastOther: number
  readonly lastNotOfSql: number
}

function operatorRun(text: string, from: number): Run {
  let [end, lastOther, lastNotOfSql] = [from, -1, -1]
  for (; end < text.length; end++) {
    const code = text.charCodeAt(end)
    if (!OPERATORS.has(code) || (end > from && startsComment(text, end, code))) break
    if (!isPlusOrMinus(code)) lastOther = end
    if (NOT_OF_SQL.has(code)) lastNotOfSql = end
  }
  return { end, lastOther, lastNotOfSql }
}

/** Returns the end of an operator. It ends in + or - only if it has a character of NOT_OF_SQL. */
function operatorEnd({ end, lastOther, lastNotOfSql }: Run, from: number): number {
  return lastNotOfSql >= from ? end : Math.max(from, lastOther) + 1
}

function startsComment(text: string, at: number, code: number): boolean {
  const following = text.charCodeAt(at + 1)
  return (code === DASH && following === DASH) || (code === SLASH && following === STAR)
}

function isPlusOrMinus(code: number): boolean {
  return code === PLUS || code === DASH
}

/** Returns the end of a sign that is no operator: `::`, `:=`, `..`, or a single character. */
function signEnd(text: string, at: number, code: number): number {
  const following = text.charCodeAt(at + 1)
  const isPair =
    (code === COLON && (following === COLON || following === EQUALS)) || (code === DOT && following === DOT)
  return isPair ? at + 2 : at + 1
}

const DECIMAL = String.raw`\d(?:_?\d)*`
const NUMBER = new RegExp(
  String.raw`0[xX](?:_?[\da-fA-F])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+|` +
    String.raw`(?:${DECIMAL}(?:\.(?!\.)(?:${DECIMAL})?)?|\.${DECIMAL})(?:[eE][-+]?${DECIMAL})?`,
  'y',
)
const PARAMETER = /\$\d+/y
const DOLLAR_QUOTE = /\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$/y

function isSpace(code: number): boolean {
  return code === 0x20 || (code >= 0x09 && code <= 0x0d)
}

function isBreak(code: number): boolean {
  return code === 0x0a || code === 0x0d
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39
}

function isWordStart(code: number): boolean {
  return (code >= 0x61 && code <= 0x7a) || (code >= 0x41 && code <= 0x5a) || code === 0x5f || code >= 0x80
}

function spaceEnd(text: string, from: number): number {
  let at = from + 1
  while (at < text.length && isSpace(text.charCodeAt(at))) at += 1
  return at
}

function wordEnd(text: string, from: number): number {
  let at = from + 1
  for (; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (!isWordStart(code) && !isDigit(code) && code !== DOLLAR) break
  }
  return at
}
