// Collects the words of the printed SQL, with one space between them: open() adds no space after its word, and close()
// adds none before its word. Limits the length, and stores the position of each word in the caller's SQL.
import { refusedLimit } from './refusal.ts'
import type { Work } from './work-budget.ts'

/** In bytes. BigQuery accepts queries of up to 1 MB. */
const PRINTED_MAX = 1_000_000

export interface From {
  readonly at: number
}

export interface Printed {
  readonly text: string
  /**
   * Maps an offset in the printed SQL to the position of the same word in the caller's SQL. Returns null for a negative
   * offset.
   */
  placeOf(offset: number): number | null
}

export class Out {
  readonly #work: Work
  readonly #parts: string[] = []
  readonly #starts: number[] = []
  readonly #places: number[] = []
  #length = 0
  #isGlued = true

  constructor(work: Work) {
    this.#work = work
  }

  /** Throws Refusal (limit) if the printed SQL becomes too long. */
  word(text: string, from: From): void {
    this.#push(this.#isGlued ? text : ` ${text}`, from, text.length)
    this.#isGlued = false
  }

  /** For an opening parenthesis: the next word follows without a space. */
  open(text: string, from: From): void {
    this.word(text, from)
    this.#isGlued = true
  }

  /** For a closing parenthesis or a comma: the word follows without a space. */
  close(text: string, from: From): void {
    this.#push(text, from, text.length)
    this.#isGlued = false
  }

  done(): Printed {
    const text = this.#parts.join('')
    const bytes = Buffer.byteLength(text)
    if (bytes > PRINTED_MAX) throw tooLong(bytes, -1)
    const [starts, places] = [this.#starts, this.#places]
    return {
      text,
      placeOf: (offset) => {
        let [low, high] = [0, starts.length]
        while (low < high) {
          const middle = (low + high) >> 1
          if ((starts[middle] ?? 0) <= offset) low = middle + 1
          else high = middle
        }
        return places[low - 1] ?? null
      },
    }
  }

  #push(text: string, { at }: From, length: number): void {
    this.#work.spend(1)
    this.#parts.push(text)
    this.#starts.push(this.#length + text.length - length)
    this.#places.push(at)
    this.#length += text.length
    if (this.#length > PRINTED_MAX) throw tooLong(this.#length, at)
  }
}

function tooLong(bytes: number, at: number): Error {
  const why = `the query, with the exposed columns of its tables written out, has over ${bytes} bytes, more than the bound of ${PRINTED_MAX}`
  return refusedLimit(
    'length',
    why,
    at,
    'Read each wide table once, in WITH, and name the columns you need instead of *.',
  )
}
