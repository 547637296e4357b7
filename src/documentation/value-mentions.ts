// Finds the values that a language model was given in the texts it writes. A text that contains a value depends on that
// value's column, whether the model says so or not. The guesses are broad, as in column-mentions.ts.
import type { KeptColumn } from '../profiles/stored-profiles.ts'
import { Names, wordsOf } from './split-words.ts'

export class ValueMentions {
  readonly #values = new Names<string>()

  constructor(profile: Iterable<Pick<KeptColumn, 'name' | 'values' | 'range' | 'personal'>>) {
    for (const { name, values, range, personal } of profile) {
      if (personal) continue
      const ends = range === null ? [] : [range.min, range.max]
      for (const value of [...(values ?? []).map((each) => each.value), ...ends]) {
        // Booleans identify nobody, and are words of many texts.
        if (typeof value === 'boolean') continue
        this.#values.add(String(value), name)
        const [date] = DATE.exec(String(value)) ?? []
        if (date !== undefined) this.#values.add(date, name)
      }
    }
  }

  /** Returns the columns whose values occur in a text. */
  in(text: string): readonly string[] {
    const words = wordsOf(text)
    return [...new Set(words.flatMap((_, start) => this.#values.at(words, start).map(({ value }) => value)))]
  }
}

/** The date of a timestamp, because a text may name only the day. */
const DATE = /^\d{4}-\d{2}-\d{2}/
