// Parses a long JSON text in slices, with the same result as JSON.parse. JSON.parse would block the event loop: 30,000
// new keys take 25 ms.
import { setImmediate } from 'node:timers/promises'

export interface Reading {
  /** True if keys may be database names. Otherwise a key with a special meaning in JavaScript is refused. */
  readonly namesAsKeys?: boolean
  /** Called for each number, with the object or array that contains it. */
  readonly onNumber?: (holder: object, key: string, value: number, source: string) => void
}

/** After this many values or characters, which take about one millisecond, parsing yields to the event loop. */
const VALUES_AT_ONCE = 500
const CHARACTERS_AT_ONCE = 1 << 16

/** Throws SyntaxError. Accepts the same nesting as scan-json.ts. */
export async function parseInSlices(text: string, reading: Reading = {}): Promise<unknown> {
  const parsing = parse(text, reading)
  for (;;) {
    const step = parsing.next()
    if (step.done === true) return step.value
    await setImmediate()
  }
}

type Open =
  | { readonly list: unknown[]; readonly fields?: never }
  | { readonly list?: never; readonly fields: Record<string, unknown>; key: string }

/** Yields after each slice, and finally returns the value. Throws SyntaxError. */
export function* parse(text: string, reading: Reading = {}): Generator<undefined, unknown> {
  const open: Open[] = []
  const from = new Cursor(text)
  for (;;) {
    if (from.isSliceOver()) yield
    let value: unknown
    if (from.takes('[')) {
      const list: unknown[] = []
      if (!from.takes(']')) {
        open.push({ list })
        continue
      }
      value = list
    } else if (from.takes('{')) {
      const fields = {}
      if (!from.takes('}')) {
        open.push({ fields, key: from.key() })
        continue
      }
      value = fields
    } else {
      const source = from.scalar()
      value = JSON.parse(source)
      const holder = open.at(-1)
      if (typeof value === 'number' && holder !== undefined) {
        if (holder.list !== undefined) reading.onNumber?.(holder.list, String(holder.list.length), value, source)
        else reading.onNumber?.(holder.fields, holder.key, value, source)
      }
    }
    // If the value was the last one of its array or object, that array or object is complete too.
    for (;;) {
      const holder = open.at(-1)
      if (holder === undefined) {
        if (!from.isAtEnd()) throw new SyntaxError('text after the value')
        return value
      }
      put(holder, value, reading.namesAsKeys === true)
      if (from.takes(',')) {
        if (holder.fields !== undefined) holder.key = from.key()
        break
      }
      if (!from.takes(holder.list === undefined ? '}' : ']')) throw new SyntaxError('no comma, and no end')
      open.pop()
      value = holder.list ?? holder.fields
    }
  }
}

function put(holder: Open, value: unknown, namesAsKeys: boolean): void {
  if (holder.list !== undefined) {
    holder.list.push(value)
    return
  }
  const { fields, key } = holder
  if (!namesAsKeys && isPoison(key, value)) throw new SyntaxError('a key to which JavaScript gives a meaning')
  if (key === '__proto__') {
    Object.defineProperty(fields, key, { value, enumerable: true, configurable: true, writable: true })
  } else fields[key] = value
}

/** Code that copies an object with such a key could change the prototype of other objects. Fastify refuses it too. */
function isPoison(key: string, value: unknown): boolean {
  if (key === '__proto__') return true
  return key === 'constructor' && typeof value === 'object' && value !== null && Object.hasOwn(value, 'prototype')
}

const [SPACE, BACKSLASH] = [32, 92] as const
/** JSON.parse decides whether such a text is valid. */
const WORD = /[-+.\w]+/y
const SPACES = /[\t\n\r ]+/y

/** A position in a text, always at the start of a token or at the end of the text. */
class Cursor {
  readonly #text: string
  #at = 0
  #values = 0
  #pause = CHARACTERS_AT_ONCE

  constructor(text: string) {
    this.#text = text
    this.#skipSpace()
  }

  isSliceOver(): boolean {
    if (++this.#values < VALUES_AT_ONCE && this.#at < this.#pause) return false
    this.#values = 0
    this.#pause = this.#at + CHARACTERS_AT_ONCE
    return true
  }

  isAtEnd(): boolean {
    return this.#at >= this.#text.length
  }

  takes(character: string): boolean {
    if (this.#text[this.#at] !== character) return false
    this.#at++
    this.#skipSpace()
    return true
  }

  key(): string {
    const key: unknown = this.#text[this.#at] === '"' ? JSON.parse(this.scalar()) : null
    if (typeof key !== 'string' || !this.takes(':')) throw new SyntaxError('no key')
    return key
  }

  scalar(): string {
    const from = this.#at
    this.#at = this.#text[from] === '"' ? this.#endOfString(from) : this.#endOfWord(from)
    const scalar = this.#text.slice(from, this.#at)
    this.#skipSpace()
    return scalar
  }

  #endOfString(from: number): number {
    let quote = from
    do {
      quote = this.#text.indexOf('"', quote + 1)
      if (quote === -1) throw new SyntaxError('a string without its end')
    } while (this.#isEscaped(quote))
    return quote + 1
  }

  #isEscaped(at: number): boolean {
    let from = at
    while (this.#text.charCodeAt(from - 1) === BACKSLASH) from--
    return (at - from) % 2 === 1
  }

  #endOfWord(from: number): number {
    WORD.lastIndex = from
    if (!WORD.test(this.#text)) throw new SyntaxError('no value')
    return WORD.lastIndex
  }

  #skipSpace(): void {
    if (this.#text.charCodeAt(this.#at) > SPACE) return
    SPACES.lastIndex = this.#at
    if (SPACES.test(this.#text)) this.#at = SPACES.lastIndex
  }
}
