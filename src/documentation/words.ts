// Texts as the words in them, and the names that stand there: whatever the case, and however a language quotes them.
// Linear in the text, however many names are looked for.

/** Letters with their accents, digits and the underscores between them. */
const WORD = /[\p{L}\p{M}\p{N}_]+/gu
const ASCII_WORD = /\w+/g
/** Read alike by the faster pattern. */
const ASCII = /^[\x00-\x7f]*$/

/** What nobody sees between two letters: zero-width and formatting characters, and selectors of a glyph. */
const UNSEEN = /[\p{Cf}\p{Default_Ignorable_Code_Point}]/gu

/** However it is written: in wide letters, with accents apart, with unseen characters inside, as Markdown escapes it. */
export function wordsOf(text: string): readonly string[] {
  const plain = plainOf(text)
  if (ASCII.test(plain)) return plain.toLowerCase().match(ASCII_WORD) ?? []
  return plain.toLowerCase().normalize('NFC').match(WORD) ?? []
}

/** The text as it reads. */
export function plainOf(text: string): string {
  const plain = text.replaceAll(String.raw`\_`, '_')
  return ASCII.test(plain) ? plain : plain.normalize('NFKC').replaceAll(UNSEEN, '')
}

/** Names to be found in texts, each with what it stands for. */
export class Names<T> {
  /** By the first word; those of one word have no rest. */
  readonly #byFirst = new Map<string, { readonly rest: readonly string[]; readonly value: T }[]>()

  get isEmpty(): boolean {
    return this.#byFirst.size === 0
  }

  /** A name that holds no word can stand nowhere. */
  add(name: string, value: T): void {
    const [first, ...rest] = wordsOf(name)
    if (first === undefined) return
    const known = this.#byFirst.get(first)
    if (known === undefined) this.#byFirst.set(first, [{ rest, value }])
    else known.push({ rest, value })
  }

  /** The words that a name begins with. */
  get firsts(): Iterable<string> {
    return this.#byFirst.keys()
  }

  /** Those that begin at a place, with the place behind each. */
  at(words: readonly string[], start: number): readonly { readonly value: T; readonly end: number }[] {
    const known = this.#byFirst.get(words[start] ?? '')
    if (known === undefined) return NOTHING
    return known
      .filter(({ rest }) => rest.every((word, n) => words[start + 1 + n] === word))
      .map(({ rest, value }) => ({ value, end: start + 1 + rest.length }))
  }
}

const NOTHING: readonly never[] = []
