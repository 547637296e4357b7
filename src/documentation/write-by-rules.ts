// The rules write proposals from keys, names, types and profiles. A table with a comment gets no summary, and a column
// with a comment gets no unit.
import type { CatalogColumn, CatalogTable } from '../drivers/driver.ts'
import type { Question } from '../drivers/example-question.ts'
import type { WriterContext, Key } from './writer-context.ts'
import { fullName } from './text-dependencies.ts'
import { meaningOf } from './units-by-name.ts'
import type { Example, Proposal, ProposedText } from './proposal.ts'

/** Writes a question in the database's query language. Returns null if this is not possible. */
type Phrase = (question: Question) => string | null

const STATEMENTS_MAX = 20
const POINTERS_MAX = 8
const ENUMERATED_MAX = 8
/** Codes are short values without spaces, unlike names of people and sentences. */
const CODE = /^[\p{L}\p{N}_.:-]{1,24}$/u
/** The maximum number of columns that an example query returns. */
const COLUMNS_SHOWN = 6

/** `tells` is added later, for all texts of one kind. */
type RuleText = Omit<ProposedText, 'tells'>

export function writeByRules(about: WriterContext, phrase: Phrase): Proposal {
  const { table } = about
  const said = table.description === null ? summary(about) : null
  return {
    summary: said === null ? null : { ...said, tells: false },
    statements: [
      ...withTells(false, [...grain(about, said !== null), ...joins(about), ...likelyJoins(about)]),
      ...withTells(true, enumerations(about)),
      ...withTells(false, [...deletions(about), ...pointers(about)]),
    ].slice(0, STATEMENTS_MAX),
    columns: new Map(
      table.columns.flatMap((column) => {
        const text = column.description === null ? meaningOf(column) : null
        return text === null ? [] : [[column.name, { text, restsOn: [column.name], tells: false }] as const]
      }),
    ),
    examples: examples(about, phrase),
  }
}

function withTells(tells: boolean, texts: readonly RuleText[]): readonly ProposedText[] {
  return texts.map((text) => ({ ...text, tells }))
}

function summary({ type, table }: WriterContext): RuleText | null {
  const keys = table.columns.filter((column) => column.primaryKey).map((column) => column.name)
  const owners = table.columns.flatMap(({ name, references }) =>
    references === null ? [] : [{ name, to: references }],
  )
  const others = [...new Set(owners.map(({ to }) => to.table))].filter((name) => name !== table.table)
  if (others.length === 0) return null
  const restsOn = [...keys, ...owners.map(({ name }) => name), ...owners.map(({ to }) => fullName(to))]
  const row = singular(inWords(table.table))
  const owner = others.map((name) => withArticle(singular(inWords(name))))
  return { text: `One ${rowOf(type)} per ${row}. Each ${row} belongs to ${listed(owner)}.`, restsOn }
}

/** Says which columns identify a row. Says nothing about MongoDB, where `_id` always identifies a document. */
function grain({ type, table, profile, typed }: WriterContext, isSummed: boolean): RuleText[] {
  const keys = table.columns.filter((column) => column.primaryKey)
  const names = keys.map((column) => column.name)
  const [one] = keys
  const to = keys.length === 1 ? one?.references : null
  if (one !== undefined && to !== null && to !== undefined) {
    const text = `At most one row per row of ${typed([to.schema, to.table])}, matched by ${typed([one.name])}.`
    return [{ text, restsOn: [one.name, fullName(to)] }]
  }
  if (keys.length > 1 || (keys.length === 1 && !isSummed)) {
    return type === 'MONGODB'
      ? []
      : [
          {
            text: `One row per ${names.length > 1 ? 'combination of ' : ''}${listed(names.map((name) => typed([name])))}.`,
            restsOn: names,
          },
        ]
  }
  const alone = table.columns.find((column) => profile.get(column.name)?.unique === true && !column.nullable)
  if (alone === undefined || keys.length > 0) return []
  return [
    {
      text: `No primary key is declared. ${typed([alone.name])} was unique in the sample.`,
      restsOn: [alone.name],
    },
  ]
}

function joins({ table, profile, typed }: WriterContext): RuleText[] {
  return table.columns.flatMap((column): RuleText[] => {
    const to = column.references
    if (to === null) return []
    const isOpen = column.nullable && profile.get(column.name)?.nullFrac !== 0
    const name = typed([column.name])
    const some = isOpen ? `. ${name} may be null: use LEFT JOIN to keep every row` : ''
    const text = `Join on ${name} = ${typed([to.schema, to.table, to.column])}${some}.`
    return [{ text, restsOn: [column.name, fullName(to)] }]
  })
}

/** Such a join repeats rows of this table. */
function pointers({ pointers: all, table, typed }: WriterContext): RuleText[] {
  return all
    .filter((from) => from.schema !== table.schema || from.table !== table.table)
    .slice(0, POINTERS_MAX)
    .map(({ to, ...from }) => ({
      text: `${typed([from.schema, from.table, from.column])} references ${typed([to])} (many to one).`,
      restsOn: [to, fullName(from)],
    }))
}

/** The name `customer_id` suggests the table `customers`, if its key has the same type. */
function likelyJoins({ table, keys, typed }: WriterContext): RuleText[] {
  return table.columns.flatMap((column) => {
    const isFree = column.references === null && !column.primaryKey
    const to = isFree ? likelyTarget(column, table, keys) : null
    if (to === null) return []
    const path = typed([to.schema, to.table, to.column.name])
    const text = `Join on ${typed([column.name])} = ${path} (inferred from the names; there is no foreign key).`
    return [{ text, restsOn: [column.name, fullName({ ...to, column: to.column.name })] }]
  })
}

function likelyTarget(
  column: CatalogColumn,
  from: { readonly schema: string; readonly table: string },
  keys: readonly Key[],
): Key | null {
  const stem = /^(.+?)_?(?:id|key|code|uuid)$/i.exec(column.name)?.[1]?.toLowerCase()
  if (stem === undefined) return null
  const fits = keys.filter(
    (key) =>
      key.column.type === column.type &&
      (key.schema !== from.schema || key.table !== from.table) &&
      isNumberOf(stem, key.table.toLowerCase()),
  )
  const near = fits.filter((key) => key.schema === from.schema)
  const [one, ...more] = near.length > 0 ? near : fits
  return one !== undefined && more.length === 0 ? one : null
}

function isNumberOf(stem: string, table: string): boolean {
  const plural = stem.endsWith('y') ? `${stem.slice(0, -1)}ies` : `${stem}s`
  return [stem, plural, `${stem}es`].includes(table)
}

function enumerations({ table, profile, typed }: WriterContext): RuleText[] {
  return table.columns.flatMap((column) => {
    const codes = codesOf(column, profile)
    if (codes === null) return []
    return [
      {
        text: `${typed([column.name])} is one of ${listed(
          codes.map((code) => `“${code}”`),
          'or',
        )}.`,
        restsOn: [column.name],
      },
    ]
  })
}

/** Sorted, so that a new profile of the same data gives the same text. */
function codesOf(column: CatalogColumn, profile: WriterContext['profile']): readonly string[] | null {
  // For an array, the profile counts elements, not column values.
  if (column.type.endsWith('[]') || column.seen?.types.includes('array') === true) return null
  const seen = profile.get(column.name)
  const values = seen?.values ?? []
  if (seen?.distinctCount !== values.length || values.length < 2 || values.length > ENUMERATED_MAX) return null
  const codes = values.map(({ value }) => (typeof value === 'string' && CODE.test(value) ? value : null))
  return codes.includes(null) ? null : codes.filter((code) => code !== null).sort()
}

/** Describes soft deletes: a deleted row stays in the table, and `deleted_at` is set. */
function deletions({ type, table, typed }: WriterContext): RuleText[] {
  const mark = table.columns.find(
    (column) => /^(?:deleted|removed|archived)_?at$/i.test(column.name) && column.nullable,
  )
  if (mark === undefined) return []
  return [
    {
      text: `A ${rowOf(type)} with ${typed([mark.name])} set is deleted: exclude it unless deleted ${rowOf(type)}s are asked for.`,
      restsOn: [mark.name],
    },
  ]
}

interface ExampleQuestion {
  readonly question: Question
  readonly words: string
  readonly restsOn: readonly string[]
}

/** The first example is the most informative. The last one only lists rows. */
function examples(about: WriterContext, phrase: Phrase): Example[] {
  const questions = [...countsJoined(about), ...countsBy(about), ...newest(about), anyRows(about)]
  return questions.flatMap(({ question, words, restsOn }) => {
    const query = phrase(question)
    return query === null ? [] : [{ text: `${words}:\n${query}`, query, restsOn: [...new Set(restsOn)], tells: false }]
  })
}

function countsJoined({ table, keys, typed }: WriterContext): ExampleQuestion[] {
  const of = { schema: table.schema, table: table.table }
  return table.columns.flatMap((column) => {
    const to = column.references
    const key = to === null ? undefined : keys.find((each) => each.schema === to.schema && each.table === to.table)
    if (to === null || key === undefined || key.label === to.column || to.table === table.table) return []
    return [
      {
        question: { kind: 'countJoined', of, column: column.name, to, label: key.label } as const,
        words: `Number of rows of ${typed([table.table])} per ${typed([key.label])} of ${typed([to.table])}, highest first`,
        restsOn: [column.name, fullName(to), fullName({ ...to, column: key.label })],
      },
    ]
  })
}

function countsBy({ type, table, profile, typed }: WriterContext): ExampleQuestion[] {
  const of = { schema: table.schema, table: table.table }
  const columns = table.columns.filter((column) => codesOf(column, profile) !== null)
  return columns.slice(0, 1).map(({ name }) => ({
    question: { kind: 'countBy', of, column: name },
    words: `Number of ${rowOf(type)}s of ${typed([table.table])} per ${typed([name])}, highest first`,
    restsOn: [name],
  }))
}

function newest({ type, table, typed }: WriterContext): ExampleQuestion[] {
  const names = shownOf(table)
  const time = table.columns.find(
    ({ name, type }) =>
      /^(?:timestamp|date)/i.test(type) || /^(?:at|date|time|ts)$|_(?:at|on|date)$|[a-z](?:At|On|Date)$/.test(name),
  )
  if (time === undefined) return []
  const question = {
    kind: 'newest',
    of: { schema: table.schema, table: table.table },
    time: time.name,
    columns: names,
  } as const
  return [
    {
      question,
      words: `The ten ${rowOf(type)}s of ${typed([table.table])} with the latest ${typed([time.name])}`,
      restsOn: [time.name, ...names],
    },
  ]
}

function anyRows({ type, table, typed }: WriterContext): ExampleQuestion {
  const columns = shownOf(table)
  const question = { kind: 'rows', of: { schema: table.schema, table: table.table }, columns } as const
  return { question, words: `Ten ${rowOf(type)}s of ${typed([table.table])}`, restsOn: columns }
}

function shownOf(table: CatalogTable): readonly string[] {
  const whole = table.columns.filter((column) => column.partOf === undefined)
  return whole.slice(0, COLUMNS_SHOWN).map((column) => column.name)
}

function rowOf(type: WriterContext['type']): string {
  return type === 'MONGODB' ? 'document' : 'row'
}

function listed(names: readonly string[], last = 'and'): string {
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} ${last} ${names.at(-1) ?? ''}`
}

/** “order items” becomes “order item”. Texts that are no plural stay unchanged. */
function singular(words: string): string {
  const irregular = IRREGULAR.find(([plural]) => new RegExp(`\\b${plural}$`).test(words))
  if (irregular !== undefined) return words.slice(0, -irregular[0].length) + irregular[1]
  if (/(?:ss|us|is|series|species|news)$/.test(words) || !words.endsWith('s')) return words
  if (/[^aeiou]ies$/.test(words)) return `${words.slice(0, -3)}y`
  return /(?:ss|x|ch|sh|tus|nus|rus|pus)es$/.test(words) ? words.slice(0, -2) : words.slice(0, -1)
}

const IRREGULAR = [
  ['people', 'person'],
  ['children', 'child'],
  ['movies', 'movie'],
  ['cookies', 'cookie'],
  ['caches', 'cache'],
] as const

/** Returns “a customer”, “an order”. `user` and `unit` begin with a consonant sound, so they get “a”. */
function withArticle(words: string): string {
  return `${/^(?:[aeio]|u(?!ni|s[aei]|til|uid))/.test(words) ? 'an' : 'a'} ${words}`
}

function inWords(name: string): string {
  return name
    .replaceAll(/(\p{Ll})(\p{Lu})/gu, '$1 $2')
    .replaceAll(/[_\s]+/g, ' ')
    .trim()
    .toLowerCase()
}
