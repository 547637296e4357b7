// Splits texts into words and finds names in them. The time hardly depends on the number of names.

const WORD = /[\p{L}\p{M}\p{N}_]+/gu
const ASCII_WORD = /\w+/g
/** In an ASCII text, ASCII_WORD finds the same words as WORD, but faster. */
const ASCII = /^[\x00-\x7f]*$/

/** Zero-width and formatting characters, and variation selectors. */
const UNSEEN = /[\p{Cf}\p{Default_Ignorable_Code_Point}]/gu

/**
 * Normalizes case, full-width letters and accents. Removes invisible characters, and the backslash of Markdown's `\_`.
 */
export function wordsOf(text: string): readonly string[] {
  const plain = plainOf(text)
  if (ASCII.test(plain)) return plain.toLowerCase().match(ASCII_WORD) ?? []
  return plain.toLowerCase().normalize('NFC').match(WORD) ?? []
}

export function plainOf(text: string): string {
  const plain = text.replaceAll(String.raw`\_`, '_')
  return ASCII.test(plain) ? plain : plain.normalize('NFKC').replaceAll(UNSEEN, '')
}

export class Names<T> {
  /** The names by their first word. `rest` has the other words. */
  readonly #byFirst = new Map<string, { readonly rest: readonly string[]; readonly value: T }[]>()

  get isEmpty(): boolean {
    return this.#byFirst.size === 0
  }

  /** Ignores a name without any word, because at() could not find it. */
  add(name: string, value: T): void {
    const [first, ...rest] = wordsOf(name)
    if (first === undefined) return
    const known = this.#byFirst.get(first)
    if (known === undefined) this.#byFirst.set(first, [{ rest, value }])
    else known.push({ rest, value })
  }

  get firsts(): Iterable<string> {
    return this.#byFirst.keys()
  }

  /** Returns the values of the names that start at the word `start`. `end` is the index of the word after the name. */
  at(words: readonly string[], start: number): readonly { readonly value: T; readonly end: number }[] {
    const known = this.#byFirst.get(words[start] ?? '')
    if (known === undefined) return NOTHING
    return known
      .filter(({ rest }) => rest.every((word, n) => words[start + 1 + n] === word))
      .map(({ rest, value }) => ({ value, end: start + 1 + rest.length }))
  }
}

const NOTHING: readonly never[] = []
