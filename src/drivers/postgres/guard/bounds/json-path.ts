// Parses a jsonpath and computes how much work it may cause. PostgreSQL compares each item of one list with each item
// of another without checking for a cancel, and keeps every list that a filter builds. The parser knows the whole
// grammar of jsonpath up to PostgreSQL 18. Any other text is refused.

import { checkRegex } from './pattern-size.ts'

/** A number of steps: `times` × document^`doc` × variables^`vars` × item^`at`. The bases are sizes in bytes. */
export interface Term {
  readonly times: number
  readonly doc: number
  readonly vars: number
  readonly at: number
  /** True if the database keeps the memory of each step until the call ends. */
  readonly isKept: boolean
  /** True if the steps visit all levels under an item. */
  readonly isDeep: boolean
  /** The first key in the path of a list. Lists under different keys are separate parts of the document. */
  readonly key: string
}

const ONE: Term = { times: 1, doc: 0, vars: 0, at: 0, isKept: false, isDeep: false, key: '' }

/** The items of an expression, and the work to compute them. */
interface Value {
  readonly items: Term
  readonly root: 'doc' | 'vars' | 'at' | null
  /** True after `.**` or .keyvalue(): some items contain other items. */
  readonly isNested: boolean
  readonly work: readonly Term[]
}

/** Returns the work of a path, or null if the text is no path that the parser knows. Throws Refusal for its patterns. */
export function pathWork(text: string): readonly Term[] | null {
  try {
    return new Path(tokensOf(text)).work()
  } catch (error) {
    if (error instanceof NotAPath) return null
    throw error
  }
}

/** Returns the work of the row path of a JSON_TABLE. `rest` is the work for each row. */
export function rowsWork(text: string, rest: readonly Term[]): readonly Term[] | null {
  try {
    return new Path(tokensOf(text)).work(rest)
  } catch (error) {
    if (error instanceof NotAPath) return null
    throw error
  }
}

/** Returns the work of a column path of a JSON_TABLE. Its `$` is the row, not the document. */
export function ofRow(terms: readonly Term[]): readonly Term[] {
  return terms.map((term) => ({ ...term, at: term.at + term.doc, doc: 0 }))
}

class NotAPath extends Error {}

const TOKEN =
  /[ \t\n\r\f]+|\/\*[^]*?\*\/|("(?:[^"\\]|\\[^])*")|(\$(?:"(?:[^"\\]|\\[^])*"|[\p{L}\p{N}_]*))|(\d[\d_]*(?:\.(?:\d[\d_]*)?)?(?:[eE][-+]?\d+)?(?![\p{L}\p{N}_])|0[xXoObB][0-9a-fA-F_]+(?![\p{L}\p{N}_])|\.\d+(?:[eE][-+]?\d+)?(?![\p{L}\p{N}_]))|(\*\*|&&|\|\||==|<>|!=|<=|>=|[@?.[\](){},*+\-/%<>!])|([\p{L}\p{N}_]+)/uy

function tokensOf(text: string): readonly string[] {
  const tokens: string[] = []
  TOKEN.lastIndex = 0
  while (TOKEN.lastIndex < text.length) {
    const found = TOKEN.exec(text)
    if (!found) throw new NotAPath()
    const token = found.slice(1).find((part) => part !== undefined)
    if (token !== undefined) tokens.push(token)
    if (tokens.length > TOKENS_MAX) throw new NotAPath()
  }
  return tokens
}

/** The maximum number of words and signs in a path. */
const TOKENS_MAX = 2_000
/** Nested parentheses and filters beyond this depth are refused. */
const DEPTH_MAX = 100
const COMPARES: ReadonlySet<string> = new Set(['==', '<>', '!=', '<', '<=', '>', '>='])
/** Methods that apply to the whole array, even in lax mode. */
const WHOLE: ReadonlySet<string> = new Set(['type', 'size'])

class Path {
  readonly #tokens: readonly string[]
  #at = 0
  #depth = 0
  #isLax = true

  constructor(tokens: readonly string[]) {
    this.#tokens = tokens
  }

  work(rest: readonly Term[] = []): readonly Term[] {
    const mode = this.#peek().toLowerCase()
    const next = this.#tokens[this.#at + 1] ?? ''
    if ((mode === 'lax' || mode === 'strict') && next !== '') {
      this.#isLax = mode === 'lax'
      this.#at += 1
    }
    const value = this.#either()
    if (this.#at < this.#tokens.length) throw new NotAPath()
    return merged([...value.work, value.items, ...each(this.#isLax ? unwrapped(value) : value, rest)])
  }

  #peek(): string {
    return this.#tokens[this.#at] ?? ''
  }

  #take(token: string): boolean {
    if (this.#peek().toLowerCase() !== token) return false
    this.#at += 1
    return true
  }

  #must(token: string): void {
    if (!this.#take(token)) throw new NotAPath()
  }

  #either(): Value {
    this.#depth += 1
    if (this.#depth > DEPTH_MAX) throw new NotAPath()
    const value = this.#joined('||', () => this.#joined('&&', () => this.#not()))
    this.#depth -= 1
    return value
  }

  #joined(symbol: string, part: () => Value): Value {
    let value = part()
    while (this.#take(symbol)) value = single([...value.work, ...part().work])
    return value
  }

  #not(): Value {
    if (this.#take('!')) return single(this.#not().work)
    const left = this.#sum()
    const symbol = this.#peek()
    if (COMPARES.has(symbol)) {
      this.#at += 1
      const [a, b] = [this.#operand(left), this.#operand(this.#sum())]
      return single([...a.work, ...b.work, product(a.items, b.items)])
    }
    if (this.#take('starts')) {
      this.#must('with')
      return single([...left.work, this.#operand(left).items, ...this.#sum().work])
    }
    if (this.#take('like_regex')) {
      const pattern = textOf(this.#string())
      // The other flags, s, m and x, do not change the size.
      const flags = this.#take('flag') ? textOf(this.#string()).replace(/[^iq]/g, '') : ''
      checkRegex(pattern, { flags }, undefined)
      return single([...left.work, this.#operand(left).items])
    }
    return left
  }

  #string(): string {
    const token = this.#peek()
    if (!token.startsWith('"')) throw new NotAPath()
    this.#at += 1
    return token
  }

  /** In lax mode, an array counts as its elements. */
  #operand(value: Value): Value {
    return this.#isLax ? unwrapped(value) : value
  }

  #sum(): Value {
    return this.#computed(['+', '-'], () => this.#computed(['*', '/', '%'], () => this.#signed()))
  }

  #computed(symbols: readonly string[], part: () => Value): Value {
    let value = part()
    while (symbols.includes(this.#peek())) {
      this.#at += 1
      const [a, b] = [this.#operand(value), this.#operand(part())]
      value = single([...a.work, ...b.work, a.items, b.items])
    }
    return value
  }

  #signed(): Value {
    let signs = 0
    while (this.#take('+') || this.#take('-')) signs += 1
    const value = this.#steps(this.#primary())
    return signs === 0 ? value : this.#operand(value)
  }

  #primary(): Value {
    const token = this.#peek()
    this.#at += 1
    if (token === '$') return { items: ONE, root: 'doc', isNested: false, work: [] }
    if (token === '@') return { items: ONE, root: 'at', isNested: false, work: [] }
    if (token.startsWith('$')) return { items: ONE, root: 'vars', isNested: false, work: [] }
    if (token === '(') {
      const inner = this.#either()
      this.#must(')')
      if (!this.#take('is')) return inner
      this.#must('unknown')
      return single(inner.work)
    }
    const word = token.toLowerCase()
    if (word === 'exists' && this.#take('(')) {
      const inner = this.#either()
      this.#must(')')
      return single([...inner.work, this.#operand(inner).items])
    }
    if (/^["\d]|^\.\d/.test(token) || ['null', 'true', 'false', 'last'].includes(word)) return single([])
    throw new NotAPath()
  }

  #steps(start: Value): Value {
    let value = start
    for (;;) {
      if (this.#take('.')) value = this.#member(value)
      else if (this.#take('[')) value = this.#subscripts(value)
      else if (this.#take('?')) value = this.#filter(value)
      else return value
    }
  }

  #member(value: Value): Value {
    if (this.#take('**')) {
      if (this.#take('{')) {
        while (!this.#take('}')) {
          if (!/^\d+$|^to$|^last$/i.test(this.#peek())) throw new NotAPath()
          this.#at += 1
        }
      }
      return nested(value)
    }
    if (this.#take('*')) return list(value)
    const name = this.#peek()
    if (!/^["\p{L}\p{N}_]/u.test(name)) throw new NotAPath()
    this.#at += 1
    if (name.startsWith('"') || !this.#take('('))
      return this.#isLax ? unwrapped(keyed(value, name)) : keyed(value, name)
    while (!this.#take(')')) {
      if (!/^["\d,+-]/.test(this.#peek())) throw new NotAPath()
      this.#at += 1
    }
    const method = name.toLowerCase()
    if (method === 'keyvalue') return nested(value)
    return this.#isLax && !WHOLE.has(method) ? unwrapped(value) : value
  }

  #subscripts(value: Value): Value {
    if (this.#take('*')) {
      this.#must(']')
      return list(value)
    }
    const inner: Term[] = []
    let [count, isRange] = [0, false]
    do {
      const ends = [this.#either()]
      if (this.#take('to')) {
        isRange = true
        ends.push(this.#either())
      }
      count += 1
      // PostgreSQL computes the subscripts again for each array.
      for (const end of ends) {
        if (end.root !== null || end.work.length > 0)
          inner.push(...[...end.work, this.#operand(end).items].map((term) => product(value.items, term)))
      }
    } while (this.#take(','))
    this.#must(']')
    const found = isRange ? list(value) : value
    return { ...found, items: { ...found.items, times: found.items.times * count }, work: [...found.work, ...inner] }
  }

  #filter(value: Value): Value {
    this.#must('(')
    const body = this.#either()
    this.#must(')')
    const subject = this.#isLax ? unwrapped(value) : value
    return { ...subject, work: [...subject.work, ...each(subject, body.work)] }
  }
}

/** Returns the text of a string that has quotes and escape sequences. */
function textOf(string: string): string {
  return string.slice(1, -1).replace(ESCAPE, (_, byte?: string, four?: string, braces?: string, char = '') => {
    const hex = byte ?? four ?? braces
    return hex === undefined
      ? (CONTROLS.get(char) ?? char)
      : String.fromCodePoint(Math.min(parseInt(hex, 16), 0x10ffff))
  })
}

const ESCAPE = /\\(?:x([\da-fA-F]{2})|u([\da-fA-F]{4})|u\{([\da-fA-F]{1,6})\}|([^]))/g
const CONTROLS: ReadonlyMap<string, string> = new Map([
  ['b', '\b'],
  ['f', '\f'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
  ['v', '\v'],
])

/** Returns a value of one item. */
function single(work: readonly Term[]): Value {
  return { items: ONE, root: null, isNested: false, work: work.filter((term) => degree(term) > 0 || term.times > 1) }
}

/** Returns how many sizes the number of steps multiplies. */
export function degree({ doc, vars, at }: Term): number {
  return doc + vars + at
}

function product(a: Term, b: Term): Term {
  return {
    times: a.times * b.times,
    doc: a.doc + b.doc,
    vars: a.vars + b.vars,
    at: a.at + b.at,
    isKept: a.isKept || b.isKept,
    isDeep: a.isDeep || b.isDeep,
    key: degree(b) === 0 ? a.key : degree(a) === 0 ? b.key : '',
  }
}

/** Returns a value with as many items as its root has elements. */
function unwrapped(value: Value): Value {
  const { root, items } = value
  if (root === null || items[root] > 0) return value
  return { ...value, items: { ...items, [root]: 1 } }
}

/** Returns the value after [*] or `.*`. In lax mode after `.**`, an item may be found twice. */
function list(value: Value): Value {
  const many = unwrapped(value)
  return value.isNested ? { ...many, items: { ...many.items, times: many.items.times * 2 } } : many
}

/** Returns the value after `.**` or .keyvalue(). A second `.**` finds each element once for each level above it. */
function nested(value: Value): Value {
  const { root, items, isNested } = unwrapped(value)
  if (root === null) return value
  return {
    ...value,
    items: { ...items, [root]: isNested ? items[root] + 1 : items[root], isDeep: true },
    isNested: true,
  }
}

function keyed(value: Value, name: string): Value {
  const isFirst = value.items === ONE && value.root !== null
  // A name with an escape sequence may spell any key. `"a"` and `a` are the same key.
  if (!isFirst || name.includes('\\')) return value
  const plain = name.startsWith('"') ? name.slice(1, -1) : name
  return { ...value, items: { ...value.items, key: `${value.root}.${plain}` } }
}

/**
 * Returns the work of a filter for all items. Items of one list do not overlap. So work that is linear in the item's
 * size is, for all items together, linear in the size of the whole.
 */
function each({ items, root, isNested }: Value, body: readonly Term[]): readonly Term[] {
  return merged(body).map((term) => {
    const count = root === null ? 0 : items[root]
    const isAgain = count > 0 && term.doc + term.vars > 0
    const again = isNested && term.isDeep ? 1 : 0
    const within = term.at > 0 ? term.at + Math.max(0, count - 1) + again : count
    const own = root === null ? 0 : within - items[root]
    const out = product({ ...items, key: '' }, { ...term, at: 0, isKept: term.isKept || isAgain })
    return root === null ? out : { ...out, [root]: out[root] + own, key: '' }
  })
}

/** Counts lists under different keys as one list, because together they are no longer than the document. */
function merged(work: readonly Term[]): readonly Term[] {
  return (['doc', 'vars', 'at'] as const).reduce(mergedRoot, work)
}

function mergedRoot(work: readonly Term[], root: 'doc' | 'vars' | 'at'): readonly Term[] {
  const isPart = (term: Term): boolean => term.key !== '' && degree(term) === 1 && term[root] === 1
  const counts = new Map<string, number>()
  for (const term of work) if (isPart(term)) counts.set(term.key, (counts.get(term.key) ?? 0) + term.times)
  const times = Math.max(0, ...counts.values())
  const first = work.find(isPart)
  return [...work.filter((term) => !isPart(term)), ...(first ? [{ ...first, times, key: '' }] : [])]
}
