// Splits SQL into tokens by the lexical rules of GoogleSQL, and drops comments. The time is proportional to the length
// of the SQL. Unknown characters are refused, and so are some valid forms that nobody needs.
import { Malformed, refusedLimit, refusedOperator, refusedStatement, shown } from './refusal.ts'
import { checkStart } from './first-word.ts'
import { RESERVED_IN_GOOGLESQL } from '../../../reserved-words.ts'
import { isName, PART, type Token } from './tokens.ts'
import { Work } from './work-budget.ts'

const TOKENS_MAX = 20_000
/** In UTF-16 units. The reader of a body has already limited the length in bytes. This limit is for other callers. */
const TEXT_MAX = 100_000

// Matches \p{Zs}, tabs, line breaks and backspaces. Also matches BOMs and zero-width spaces, which pasted text may
// contain.
const SPACE = /[\t-\r\b\p{Zs}\u200b\ufeff]+/uy
const LINE_COMMENT = /(?:--|#)[^\r\n]*/y
const WORD = /[A-Za-z_][A-Za-z0-9_]*/y
/** Matches a name after a dot. Such a name may start with a digit. */
const MEMBER = /[A-Za-z0-9_]+/y
const NUMBER = /0[xX][0-9A-Fa-f]+|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?/y
const STRING = /(?:[rR][bB]?|[bB][rR]?)?(?:'''|"""|'|")/y
/** Matches a quoted name. GoogleSQL would unescape backslashes in it. Nobody needs them, so they are refused. */
const QUOTED = /`[^`\\\p{Cc}]+`/uy
/** Parameter names ignore case, so they are printed and bound in lower case. */
const PARAMETER = /@[A-Za-z_]\w{0,127}(?!\w)|\?/y
const SYMBOL = /\|>|\|\||<<|>>|<=|>=|<>|!=|->|=>|[-+*/%~&|^=<>!.,()[\]]/y
/**
 * For each opening quote, matches the string to its end. A quote after a backslash does not end the string, not even in
 * a raw string.
 */
const BODY: ReadonlyMap<string, RegExp> = new Map([
  ["'", /(?:[^'\\\r\n]|\\[^\r\n])*'/y],
  ['"', /(?:[^"\\\r\n]|\\[^\r\n])*"/y],
  ["'''", /(?:[^'\\]|\\[^]|'(?!''))*'''/y],
  ['"""', /(?:[^"\\]|\\[^]|"(?!""))*"""/y],
])

interface Lexer {
  readonly text: string
  at: number
  readonly tokens: Token[]
}

/**
 * Drops a semicolon at the end. Throws Malformed if the SQL is malformed, and Refusal if it is too long or not allowed.
 */
export function lex(text: string, work = new Work()): Token[] {
  const nul = text.indexOf('\0')
  if (nul >= 0) throw new Malformed('the text contains a NUL', nul)
  if (text.length > TEXT_MAX) {
    const why = `the query has ${text.length} characters, more than the bound of ${TEXT_MAX}`
    throw refusedLimit('length', why, 0, 'Send a shorter text: put long lists of values into a table or a range.')
  }
  const lexer: Lexer = { text, at: 0, tokens: [] }
  const { tokens } = lexer
  while (skip(lexer)) {
    if (text[lexer.at] === ';') {
      expectEnd(lexer)
      break
    }
    const token = next(lexer)
    lexer.at = token.end
    tokens.push(token)
    if (tokens.length === 1) checkStart(token)
    if (tokens.length > TOKENS_MAX) {
      const why = `the query has over ${TOKENS_MAX} words and signs, more than the bound of ${TOKENS_MAX}`
      throw refusedLimit('tokens', why, token.at, 'Split the query, or write long lists of values as ranges.')
    }
  }
  work.spend(tokens.length)
  return tokens
}

/** Skips blanks and comments. Returns false at the end of the SQL. */
function skip(lexer: Lexer): boolean {
  const { text } = lexer
  for (;;) {
    const end = match(SPACE, lexer.text, lexer.at) ?? match(LINE_COMMENT, lexer.text, lexer.at)
    if (end !== null) lexer.at = end
    else if (text.startsWith('/*', lexer.at)) lexer.at = pastComment(lexer)
    else return lexer.at < text.length
  }
}

/** Comments in GoogleSQL do not nest. */
function pastComment({ text, at }: Lexer): number {
  const end = text.indexOf('*/', at + 2)
  if (end < 0) throw new Malformed('a comment is not closed', at)
  return end + 2
}

/** Only semicolons may follow a semicolon. Throws Refusal for anything else. */
function expectEnd(lexer: Lexer): void {
  while (skip(lexer)) {
    if (lexer.text[lexer.at] !== ';') {
      throw refusedStatement('a second statement', lexer.at, 'Send one query at a time, without scripting.')
    }
    lexer.at += 1
  }
}

function match(pattern: RegExp, text: string, at: number): number | null {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : null
}

function next(lexer: Lexer): Token {
  const { text, at, tokens } = lexer
  const before = tokens.at(-1)
  if (before?.key === '.' && behindName(tokens)) {
    const member = match(MEMBER, lexer.text, lexer.at)
    if (member !== null) return memberToken(text.slice(at, member), at, member)
  }
  const string = match(STRING, lexer.text, lexer.at)
  if (string !== null) return stringToken(lexer, string)
  const word = match(WORD, lexer.text, lexer.at)
  if (word !== null) {
    const token = wordToken(text.slice(at, word), at, word)
    if (before?.key === '.' && RESERVED_IN_GOOGLESQL.has(token.key))
      throw new Malformed(`unexpected ${token.text} after a dot`, at)
    return token
  }
  if (text[at] === '`') return quotedToken(lexer)
  const number = match(NUMBER, lexer.text, lexer.at)
  if (number !== null && !(text[at] === '.' && isOperand(before))) return numberToken(lexer, number)
  const parameter = match(PARAMETER, lexer.text, lexer.at)
  if (parameter !== null)
    return { kind: 'parameter', text: text.slice(at, parameter).toLowerCase(), key: '', name: '', at, end: parameter }
  const symbol = match(SYMBOL, lexer.text, lexer.at)
  if (symbol === null) throw unknown(lexer)
  const sign = text.slice(at, symbol)
  return { kind: 'symbol', text: sign, key: sign, name: '', at, end: symbol }
}

/**
 * True if the token before the dot can have fields: a name, a string, a parameter, a closing bracket, or a part of a
 * project's name.
 */
function behindName(tokens: readonly Token[]): boolean {
  return isOperand(tokens.at(-2))
}

function isOperand(token: Token | undefined): boolean {
  if (token === undefined) return false
  return (
    isName(token) ||
    token.kind === 'string' ||
    token.kind === 'parameter' ||
    token.key === ')' ||
    token.key === ']' ||
    token.key === PART
  )
}

function wordToken(text: string, at: number, end: number): Token {
  return { kind: 'word', text, key: text.toUpperCase(), name: text, at, end }
}

/** After a dot every word is a name, even a reserved word. It is printed so that it stays a name. */
function memberToken(name: string, at: number, end: number): Token {
  const plain = !/^[0-9]/.test(name) && !RESERVED_IN_GOOGLESQL.has(name.toUpperCase())
  return { kind: plain ? 'word' : 'quoted', text: plain ? name : `\`${name}\``, key: '', name, at, end }
}

function quotedToken(lexer: Lexer): Token {
  const end = match(QUOTED, lexer.text, lexer.at)
  if (end === null) {
    throw new Malformed('a name in backquotes is empty, not closed, or contains a backslash or line break', lexer.at)
  }
  const text = lexer.text.slice(lexer.at, end)
  return { kind: 'quoted', text, key: '', name: text.slice(1, -1), at: lexer.at, end }
}

function stringToken(lexer: Lexer, open: number): Token {
  const { text, at } = lexer
  const body = BODY.get(text.slice(at, open).replace(/^[a-z]+/i, ''))
  const end = body === undefined ? null : match(body, text, open)
  if (end === null) throw new Malformed('a string is not closed', at)
  if (text[end] === '"' || text[end] === "'") throw new Malformed('a quote directly after a string', end)
  return { kind: 'string', text: text.slice(at, end), key: '', name: '', at, end }
}

/**
 * In GoogleSQL, a letter may directly follow a number (`1.FROM`). Only the name of a project needs this, after a dash.
 */
function numberToken(lexer: Lexer, end: number): Token {
  const { text, at, tokens } = lexer
  const after = text[end]
  const glued = after !== undefined && /[A-Za-z_`]/.test(after)
  if (!glued) return { kind: 'number', text: text.slice(at, end), key: '', name: '', at, end }
  const dash = tokens.at(-1)
  const head = tokens.at(-2)
  const inName = dash?.key === '-' && dash.end === at && head !== undefined && isName(head) && head.end === dash.at
  const part = inName ? match(MEMBER, lexer.text, lexer.at) : null
  if (part === null) throw new Malformed(`a number is directly followed by ${shown(after)}`, end)
  // No expression accepts a token with this key.
  return { kind: 'number', text: text.slice(at, part), key: PART, name: text.slice(at, part), at, end: part }
}

/** Returns GoogleSQL's name for a type of another dialect. */
function typeOf(written: string): string {
  const key = written.toUpperCase()
  if (/^(?:TEXT|VARCHAR|CHAR|STRING)$/.test(key)) return 'STRING'
  if (/^(?:INT\d?|INTEGER|BIGINT|SMALLINT)$/.test(key)) return 'INT64'
  if (/^(?:FLOAT\d?|REAL|DOUBLE)$/.test(key)) return 'FLOAT64'
  if (key === 'TIMESTAMPTZ') return 'TIMESTAMP'
  return key
}

function unknown({ text, at, tokens }: Lexer): Error {
  const sign = String.fromCodePoint(text.codePointAt(at) ?? 0)
  if (sign === '@' && text[at + 1] === '@') {
    return refusedStatement('@@', at, 'Leave it out.', 'system variables (@@…) may not be read')
  }
  if (sign === '@') {
    const why = 'hints (@{…}) are not supported, and a parameter is written @name'
    return refusedStatement('@', at, 'Leave the hint out; write a parameter as @name, with its value in `params`.', why)
  }
  if (sign === '{' || sign === '}') return new Malformed('a brace: fill in templates before sending the query', at)
  if (text.startsWith('::', at)) {
    const type = /^::\s*(\w{1,40})/.exec(text.slice(at, at + 60))?.[1] ?? 'type'
    const before = tokens.at(-1)
    const value = before !== undefined && isName(before) ? before.text : 'x'
    return refusedOperator('::', `Write CAST(${value} AS ${typeOf(type)}).`, at)
  }
  if (sign === ':')
    return new Malformed('unexpected : (write a table as dataset.table; legacy SQL is not supported)', at)
  return new Malformed(`unexpected ${shown(sign)}`, at)
}
