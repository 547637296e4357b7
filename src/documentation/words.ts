// Texts as the words in them, and the names that stand there: whatever the case, and however a language quotes them.
// Linear in the text, however many names are looked for.

/** Letters, digits and the underscores between them. */
const WORD = /[\p{L}\p{N}_]+/gu
/** A longer name is known by its first words. */
const WORDS_MAX = 6

export function wordsOf(text: string): readonly string[] {
  return text.toLowerCase().match(WORD) ?? []
}

/** A name as runs() would show it; empty for one that holds no word. */
export function runOf(name: string): string {
  return wordsOf(name).slice(0, WORDS_MAX).join(' ')
}

/** Every run of words from each place on, the shortest first, with the place behind it. */
export function* runs(words: readonly string[], from = 0, to = words.length): Generator<readonly [string, number]> {
  for (let start = from; start < to; start++) {
    let run = ''
    for (let end = start; end < Math.min(words.length, start + WORDS_MAX); end++) {
      run = end === start ? (words[end] ?? '') : `${run} ${words[end] ?? ''}`
      yield [run, end + 1]
    }
  }
}
