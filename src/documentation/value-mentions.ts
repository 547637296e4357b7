// A language model may write a value of a column into a text without listing the column. Then the text depends on that
// column. If in doubt, a value counts as found.
import type { KeptColumn } from '../profiles/stored-profiles.ts'
import { Names, wordsOf } from './split-words.ts'

export class ValueMentions {
  readonly #values = new Names<string>()

  constructor(profile: Iterable<Pick<KeptColumn, 'name' | 'values' | 'range' | 'personal'>>) {
    for (const { name, values, range, personal } of profile) {
      if (personal) continue
      const ends = range === null ? [] : [range.min, range.max]
      for (const value of [...(values ?? []).map((each) => each.value), ...ends]) {
        // `true` and `false` identify nobody, and many texts contain these words.
        if (typeof value === 'boolean') continue
        this.#values.add(String(value), name)
        const [date] = DATE.exec(String(value)) ?? []
        if (date !== undefined) this.#values.add(date, name)
      }
    }
  }

  in(text: string): readonly string[] {
    const words = wordsOf(text)
    return [...new Set(words.flatMap((_, start) => this.#values.at(words, start).map(({ value }) => value)))]
  }
}

/** A text about a timestamp may contain only its date. */
const DATE = /^\d{4}-\d{2}-\d{2}/
