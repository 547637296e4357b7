// Reads a language model's answer, which is untrusted input. Refuses an answer of the wrong shape. Drops texts that are
// too long, have forbidden characters, list unknown columns or exceed the maximum count. Any text may repeat values
// that the model was given.
import { z } from 'zod'
import { byName } from '../contract/name-keyed-objects.ts'
import type { CatalogTable } from '../drivers/driver.ts'
import type { ColumnMentions } from './column-mentions.ts'
import type { ValueMentions } from './value-mentions.ts'
import type { Example, Proposal, ProposedText } from './proposal.ts'

/** In UTF-16 code units. */
const LONGEST = { summary: 600, statement: 300, column: 200, words: 200, query: 2_000 } as const
const STATEMENTS_MAX = 12
const COLUMNS_MAX = 300
const EXAMPLES_MAX = 3

const Answer = z.object({
  summary: z.string().nullish(),
  statements: z.array(z.object({ text: z.string(), restsOn: z.array(z.string()).optional() })).optional(),
  columns: byName(z.string()).optional(),
  /** For MongoDB, models also write a query as an object. */
  examples: z
    .array(z.object({ words: z.string(), query: z.union([z.string(), z.record(z.string(), z.unknown())]) }))
    .optional(),
})

/**
 * `table` and the catalog of `naming` must contain only exposed columns. `givenValues` finds the values that the model
 * was given. Throws a SyntaxError or a ZodError for an unusable answer.
 */
export function readAnswer(
  text: string,
  table: CatalogTable,
  naming: ColumnMentions,
  givenValues: ValueMentions,
): Proposal {
  const answer = Answer.parse(JSON.parse(unwrapped(text)))
  const names = new Set(table.columns.map((column) => column.name))
  const said = (raw: string, max: number, restsOn: readonly string[] = []): ProposedText | null => {
    const plain = plainText(raw, max)
    if (plain === null || !restsOn.every((name) => names.has(name))) return null
    return {
      text: plain,
      restsOn: [...new Set([...restsOn, ...naming.in(plain, table), ...givenValues.in(plain)])],
      tells: true,
    }
  }
  return {
    summary: typeof answer.summary === 'string' ? said(answer.summary, LONGEST.summary) : null,
    statements: (answer.statements ?? [])
      .map((each) => said(each.text, LONGEST.statement, each.restsOn))
      .filter((each) => each !== null)
      .slice(0, STATEMENTS_MAX),
    columns: new Map(
      [...(answer.columns ?? [])].slice(0, COLUMNS_MAX).flatMap(([name, raw]) => {
        const text = names.has(name) ? said(raw, LONGEST.column, [name]) : null
        return text === null ? [] : [[name, text] as const]
      }),
    ),
    examples: (answer.examples ?? [])
      .slice(0, EXAMPLES_MAX)
      .map(({ words, query }) =>
        exampleOf(words, query, (plain) => [...naming.in(plain, table), ...givenValues.in(plain)]),
      )
      .filter((each) => each !== null),
  }
}

function exampleOf(words: string, asked: unknown, restsOn: (text: string) => readonly string[]): Example | null {
  const query = (typeof asked === 'string' ? asked : JSON.stringify(asked)).replaceAll(/\s+/g, ' ').trim()
  const plain = plainText(words, LONGEST.words)?.replace(/[.:?]+$/, '') ?? null
  // A query with a comment is dropped, because the text of the comment would not be checked.
  const isPlain = !/--|\/\*|\p{Cc}|\p{Cf}/u.test(query) && !ADDRESS.test(query)
  if (plain === null || query === '' || query.length > LONGEST.query || !isPlain) return null
  const text = `${plain}:\n${query}`
  return { text, query, restsOn: [...new Set(restsOn(text))], tells: true }
}

/** Removes a code fence around the JSON, and words before it. */
function unwrapped(text: string): string {
  return text.slice(Math.max(0, text.indexOf('{')), text.lastIndexOf('}') + 1)
}

const ADDRESS = /:\/\/|\bwww\.|\b(?:javascript|mailto|data):/i
/** Matches tags, links, images and HTML entities. Emphasis is allowed: plainText() removes only its marks. */
const MARKUP = /<[a-z!/?]|\]\(|&#?\w+;/i

/** Returns one line of plain text. Null if the text is too long or empty, or contains a URL or markup. */
function plainText(raw: string, max: number): string | null {
  if (raw.length > max * 2) return null
  const text = raw
    .toWellFormed()
    .replaceAll(/\p{Cf}/gu, '')
    .replaceAll(/`|\*\*|^#+ /gm, '')
    .replaceAll(/[\s\p{Cc}]+/gu, ' ')
    .trim()
  return text === '' || text.length > max || ADDRESS.test(text) || MARKUP.test(text) ? null : text
}
