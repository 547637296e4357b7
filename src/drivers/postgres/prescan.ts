// A look at the text before the parser gets it: comments nested deep make its scanner quadratic (100,000 of them: over
// a minute that no timeout ends), long chains and deep nesting overrun its stack. Decides nothing about names.

/** Comments inside comments. */
const COMMENTS_MAX = 8
/** Parts of one another: operators in one chain, parentheses in parentheses. The deepest real query has about 80. */
export const DEPTH_MAX = 3_000

export type Prescan =
  | { readonly kind: 'fine'; readonly tokens: number }
  | { readonly kind: 'comments'; readonly at: number }
  | { readonly kind: 'deep'; readonly at: number }

/** Words that make the tree around them one deeper. */
const CHAINS: ReadonlySet<string> = new Set([
  ...['NOT', 'IS', 'ISNULL', 'NOTNULL', 'IN', 'LIKE', 'ILIKE', 'SIMILAR', 'BETWEEN', 'COLLATE', 'AT', 'OVERLAPS'],
])
/** Words of chains that a comma does not end. */
const LONG_CHAINS: ReadonlySet<string> = new Set(['UNION', 'INTERSECT', 'EXCEPT', 'JOIN'])
const FLAT: ReadonlySet<string> = new Set(['AND', 'OR', 'WHEN', 'THEN', 'ELSE', 'SELECT', 'FROM', 'WHERE', 'AS'])

const TOKEN =
  /(?<space>\s+)|(?<line>--[^\n\r]*)|(?<block>\/\*)|(?<text>[eE]?'|\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$|")|(?<word>[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*)|(?<number>[\d.]+)|(?<operator>[-+*/<>=~!@#%^&|`?:]+)|(?<other>[\s\S])/guy

/** Counts what the parser's stack would have to hold; quotes and comments are read as its scanner reads them. */
export function prescan(text: string): Prescan {
  const scan = new Depths()
  TOKEN.lastIndex = 0
  for (let match = TOKEN.exec(text); match; match = TOKEN.exec(text)) {
    const at = match.index
    const token = match[0]
    const kind = kindOf(match)
    if (kind === 'space' || kind === 'line') continue
    if (kind === 'block') {
      const end = commentEnd(text, at)
      if (end === undefined) return { kind: 'comments', at }
      TOKEN.lastIndex = end
    } else if (kind === 'text') {
      scan.tokens += 1
      TOKEN.lastIndex = textEnd(text, at, token)
    } else {
      const end = kind === 'operator' ? operatorEnd(token) : token.length
      TOKEN.lastIndex = at + end
      scan.take(kind, token.slice(0, end))
      if (scan.depth > DEPTH_MAX) return { kind: 'deep', at }
    }
  }
  return { kind: 'fine', tokens: scan.tokens }
}

type Kind = 'space' | 'line' | 'block' | 'text' | 'word' | 'number' | 'operator' | 'other'

function kindOf({ groups = {} }: RegExpExecArray): Kind {
  if (groups['space'] !== undefined) return 'space'
  if (groups['word'] !== undefined) return 'word'
  if (groups['other'] !== undefined) return 'other'
  if (groups['number'] !== undefined) return 'number'
  if (groups['operator'] !== undefined) return 'operator'
  if (groups['text'] !== undefined) return 'text'
  return groups['block'] === undefined ? 'line' : 'block'
}

/** One level of parentheses: how long its chains are by now. */
interface Open {
  chain: number
  long: number
}

class Depths {
  tokens = 0
  /** Of all levels that are open. */
  depth = 0
  readonly #open: Open[] = [{ chain: 0, long: 0 }]

  take(kind: Kind, token: string): void {
    this.tokens += 1
    if (kind === 'operator') return this.#chain(1)
    if (kind === 'word') return this.#word(token.toUpperCase())
    if (token === '(' || token === '[') return this.#enter()
    if (token === ')' || token === ']') return this.#leave()
    if (token === ',' || token === ';') this.#flatten()
  }

  #word(word: string): void {
    if (CHAINS.has(word)) this.#chain(1)
    else if (LONG_CHAINS.has(word)) {
      this.#top().long += 1
      this.depth += 1
    } else if (word === 'CASE') this.#enter()
    else if (word === 'END') this.#leave()
    else if (FLAT.has(word)) this.#flatten()
  }

  #top(): Open {
    return this.#open.at(-1) ?? { chain: 0, long: 0 }
  }

  #chain(length: number): void {
    this.#top().chain += length
    this.depth += length
  }

  #flatten(): void {
    const top = this.#top()
    this.depth -= top.chain
    top.chain = 0
  }

  #enter(): void {
    this.#open.push({ chain: 0, long: 0 })
    this.depth += 1
  }

  #leave(): void {
    if (this.#open.length < 2) return
    const closed = this.#open.pop()
    // What was closed is as deep as it was, under whatever its own chain goes on with.
    this.depth -= 1 + (closed?.chain ?? 0) + (closed?.long ?? 0)
  }
}

/** Behind the comment's end; undefined where it nests too deep. An open one runs to the end of the text. */
function commentEnd(text: string, from: number): number | undefined {
  let depth = 0
  const edge = /\/\*|\*\//g
  edge.lastIndex = from
  for (let match = edge.exec(text); match; match = edge.exec(text)) {
    depth += match[0] === '/*' ? 1 : -1
    if (depth > COMMENTS_MAX) return undefined
    if (depth === 0) return edge.lastIndex
  }
  return text.length
}

/** Behind the closing quote; a doubled quote is read as two texts, which comes to the same. */
function textEnd(text: string, at: number, opening: string): number {
  if (opening.startsWith('$')) {
    const end = text.indexOf(opening, at + opening.length)
    return end < 0 ? text.length : end + opening.length
  }
  const quote = opening.endsWith('"') ? '"' : "'"
  const escapes = opening.length > 1
  for (let index = at + opening.length; index < text.length; index++) {
    const unit = text[index]
    if (unit === '\\' && escapes) index += 1
    else if (unit === quote) return index + 1
  }
  return text.length
}

/** An operator ends where a comment begins. */
function operatorEnd(operator: string): number {
  const comment = operator.search(/--|\/\*/)
  return comment > 0 ? comment : operator.length
}
