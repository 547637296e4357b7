// The values that a language model was told of a table, to be found again in what it writes: a text that holds one rests on
// the column it came from, whether the model says so or not. It guesses wide, as column-mentions.ts does.
import type { KeptColumn } from '../profiles/stored.ts'
import { Names, wordsOf } from './words.ts'

export class ValueMentions {
  readonly #values = new Names<string>()

  constructor(profile: Iterable<Pick<KeptColumn, 'name' | 'values' | 'range' | 'personal'>>) {
    for (const { name, values, range, personal } of profile) {
      if (personal) continue
      const ends = range === null ? [] : [range.min, range.max]
      for (const value of [...(values ?? []).map((each) => each.value), ...ends]) {
        // Two truth values are nobody's, and words of many texts.
        if (typeof value === 'boolean') continue
        this.#values.add(String(value), name)
        const [date] = DATE.exec(String(value)) ?? []
        if (date !== undefined) this.#values.add(date, name)
      }
    }
  }

  /** The columns of the table whose values stand in a text. */
  in(text: string): readonly string[] {
    const words = wordsOf(text)
    return [...new Set(words.flatMap((_, start) => this.#values.at(words, start).map(({ value }) => value)))]
  }
}

/** Of a time, which a text may tell by its day alone. */
const DATE = /^\d{4}-\d{2}-\d{2}/
