// Ranks tables by searched words. The name of a table weighs most, then columns, descriptions and documentation.
import type { Table } from './read-description.ts'

/** Further words are ignored. */
const WORDS_MAX = 20

const WEIGHT = { table: 100, column: 40, description: 10, documentation: 3 } as const
/** A word that only starts with the searched word gets this share of the weight. */
const PREFIX_SHARE = 0.6
/**
 * A searched word must have at least this many characters to match the start of a longer word. Only longer words lose a
 * final s.
 */
const PREFIX_CHARS = 3

/** Returns the words in lower case. `orderItem_id` becomes order, item and id. */
function wordsOf(text: string): readonly string[] {
  return (
    text
      .replaceAll(/(\p{Ll}|\d)(\p{Lu})/gu, '$1 $2')
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? []
  )
}

export function soughtWords(search: string): readonly string[] {
  return [...new Set(wordsOf(search).map(singular))].slice(0, WORDS_MAX)
}

/** A table with more of the searched words always ranks above a table with fewer. Returns 0 if it has none of them. */
export function scoreOf(table: Table, sought: readonly string[]): number {
  const texts = textsOf(table)
  let [found, sum] = [0, 0]
  for (const word of sought) {
    let best = 0
    for (const [weight, words] of texts) {
      if (weight <= best) break
      best = Math.max(best, weight * fitOf(word, words))
    }
    if (best > 0) found++
    sum += best
  }
  return found === 0 ? 0 : found * WEIGHT.table * WORDS_MAX + sum
}

function textsOf(table: Table): readonly (readonly [number, readonly string[]])[] {
  const { documentation, columns } = table
  const about = columns.flatMap(({ description, stats }) => [
    ...(description === null ? [] : wordsOf(description)),
    ...(stats?.values ?? []).flatMap(({ value }) => (typeof value === 'string' ? wordsOf(value) : [])),
  ])
  const facts =
    documentation === null
      ? []
      : [documentation.summary ?? '', ...documentation.statements, documentation.examples ?? '']
  return [
    [WEIGHT.table, [...wordsOf(table.table), table.table.toLowerCase()]],
    [WEIGHT.column, columns.flatMap(({ name }) => [...wordsOf(name), name.toLowerCase()])],
    [WEIGHT.description, [...wordsOf(table.description ?? ''), ...about, ...wordsOf(table.schema)]],
    [WEIGHT.documentation, facts.flatMap(wordsOf)],
  ]
}

function fitOf(sought: string, words: readonly string[]): number {
  let fit = 0
  for (const word of words) {
    if (singular(word) === sought) return 1
    if (sought.length >= PREFIX_CHARS && word.startsWith(sought)) fit = PREFIX_SHARE
  }
  return fit
}

function singular(word: string): string {
  return word.length > PREFIX_CHARS && word.endsWith('s') ? word.slice(0, -1) : word
}
