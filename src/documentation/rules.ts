// The writer that needs no network: what keys, names, comments and profiles say of a table by themselves. It says only
// what follows from them, and nothing twice that the description says already.
import type { CatalogColumn } from '../drivers/driver.ts'
import type { Question } from '../drivers/question.ts'
import type { About, Key } from './about.ts'
import { fullName } from './columns.ts'
import { meaningOf } from './meanings.ts'
import type { Example, Proposal, ProposedText } from './proposal.ts'

/** A question of the table in its own language; null where there is no way. */
type Phrase = (question: Question) => string | null

const STATEMENTS_MAX = 20
/** A list of more values is no enumeration. */
const ENUMERATED_MAX = 12
const COLUMNS_SHOWN = 6

export function writeByRules(about: About, phrase: Phrase): Proposal {
  const { table } = about
  return {
    summary: table.description === null ? summary(about) : null,
    statements: [
      ...grain(about),
      ...joins(about),
      ...likelyJoins(about),
      ...enumerations(about),
      ...deletions(about),
    ].slice(0, STATEMENTS_MAX),
    columns: new Map(
      table.columns.flatMap((column) => {
        const text = column.description === null ? meaningOf(column) : null
        return text === null ? [] : [[column.name, { text, restsOn: [column.name] }] as const]
      }),
    ),
    examples: examples(about, phrase),
  }
}

/** What its rows are, and whom they belong to. */
function summary({ table, pointers }: About): ProposedText | null {
  const owners = table.columns.filter((column) => column.references !== null)
  const belongs = [...new Set(owners.map((column) => column.references?.table ?? ''))]
  const parts = [...new Set(pointers.map((pointer) => pointer.table))].filter((name) => name !== table.table)
  if (belongs.length === 0 && parts.length === 0) return null
  const clauses = [
    ...(belongs.length > 0 ? [`each row belongs to ${listed(belongs)}`] : []),
    ...(parts.length > 0 ? [`rows of ${listed(parts)} point to it`] : []),
  ]
  const restsOn = [
    ...owners.map((column) => column.name),
    ...owners.flatMap(({ references }) => (references === null ? [] : [fullName(references)])),
    ...pointers.map(fullName),
  ]
  return { text: `${titled(table.table)}: ${clauses.join('; ')}.`, restsOn }
}

/** What tells one row from another. */
function grain({ table, profile }: About): ProposedText[] {
  const keys = table.columns.filter((column) => column.primaryKey).map((column) => column.name)
  if (keys.length > 0) return [{ text: `One row per ${listed(keys)}.`, restsOn: keys }]
  const alone = table.columns.find((column) => profile.get(column.name)?.unique === true && !column.nullable)
  if (alone === undefined) return []
  return [{ text: `No primary key is declared; no two rows looked at share ${alone.name}.`, restsOn: [alone.name] }]
}

/** Joins that a foreign key vouches for, in both directions. */
function joins({ table, pointers }: About): ProposedText[] {
  const out = table.columns.flatMap((column): ProposedText[] => {
    const to = column.references
    if (to === null) return []
    const some = column.nullable ? 'at most one row' : 'one row'
    const text = `Join ${column.name} to ${to.schema}.${to.table}.${to.column}: ${some} there for each row here.`
    return [{ text, restsOn: [column.name, fullName(to)] }]
  })
  const into = pointers.map(({ schema, table: from, column, to }) => ({
    text: `${schema}.${from}.${column} points to ${to}: any number of rows there for one row here.`,
    restsOn: [to, fullName({ schema, table: from, column })],
  }))
  const isSelf = (said: ProposedText) => out.some((other) => other.restsOn[0] === said.restsOn[0])
  return [
    ...out,
    ...into.filter(
      (said) => said.restsOn[1] !== fullName({ ...table, column: said.restsOn[0] ?? '' }) || !isSelf(said),
    ),
  ]
}

/** Joins that no foreign key declares, but the names say: customer_id, and a table customers with a key of that type. */
function likelyJoins({ table, keys }: About): ProposedText[] {
  return table.columns.flatMap((column) => {
    const to = column.references === null && !column.primaryKey ? likelyTarget(column, table, keys) : null
    if (to === null) return []
    const text = `${column.name} is by its name a key of ${to.schema}.${to.table}.${to.column.name}; no foreign key says so.`
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

/** `customer` and customers, `category` and categories, `box` and boxes. */
function isNumberOf(stem: string, table: string): boolean {
  const plural = stem.endsWith('y') ? `${stem.slice(0, -1)}ies` : `${stem}s`
  return [stem, plural, `${stem}es`].includes(table)
}

/** Columns whose every value is known, and few. */
function enumerations({ table, profile }: About): ProposedText[] {
  return table.columns.flatMap((column) => {
    const seen = profile.get(column.name)
    const values = seen?.values ?? []
    const isClosed = seen?.distinctCount === values.length && values.length > 1 && values.length <= ENUMERATED_MAX
    if (!isClosed || values.some(({ value }) => typeof value !== 'string')) return []
    const text = `${column.name} is one of ${listed(values.map(({ value }) => `“${String(value)}”`).sort(), 'or')}.`
    return [{ text, restsOn: [column.name] }]
  })
}

/** Rows that stay when they are deleted. */
function deletions({ table }: About): ProposedText[] {
  const mark = table.columns.find(
    (column) => /^(?:deleted|removed|archived)_?at$/i.test(column.name) && column.nullable,
  )
  if (mark === undefined) return []
  return [
    { text: `A row with ${mark.name} set counts as gone: leave it out unless it is asked for.`, restsOn: [mark.name] },
  ]
}

/** From the most telling to the one that always works. */
function examples(about: About, phrase: Phrase): Example[] {
  const { table, profile, keys } = about
  const of = { schema: table.schema, table: table.table }
  const asked: { readonly question: Question; readonly words: string; readonly restsOn: readonly string[] }[] = []
  for (const column of table.columns) {
    const to = column.references
    const key = to === null ? undefined : keys.find((each) => each.schema === to.schema && each.table === to.table)
    if (to === null || key === undefined || key.label === to.column) continue
    asked.push({
      question: { kind: 'countJoined', of, column: column.name, to, label: key.label },
      words: `Rows of ${table.table} by ${key.label} of ${to.table}, the most first`,
      restsOn: [column.name, fullName(to), fullName({ ...to, column: key.label })],
    })
  }
  const group = table.columns.find((column) => (profile.get(column.name)?.values?.length ?? 0) > 1)
  if (group !== undefined) {
    const words = `Rows of ${table.table} by ${group.name}, the most first`
    asked.push({ question: { kind: 'countBy', of, column: group.name }, words, restsOn: [group.name] })
  }
  const shown = table.columns.filter((column) => column.partOf === undefined).slice(0, COLUMNS_SHOWN)
  const names = shown.map((column) => column.name)
  const time = table.columns.find(
    (column) => /^(?:timestamp|date)/i.test(column.type) || /_(?:at|on|date)$/i.test(column.name),
  )
  if (time !== undefined) {
    const question = { kind: 'newest', of, time: time.name, columns: names } as const
    asked.push({ question, words: `The ten newest rows of ${table.table}`, restsOn: [time.name, ...names] })
  }
  asked.push({ question: { kind: 'rows', of, columns: names }, words: `Ten rows of ${table.table}`, restsOn: names })
  return asked.flatMap(({ question, words, restsOn }) => {
    const query = phrase(question)
    return query === null ? [] : [{ text: `${words}:\n${query}`, query, restsOn: [...new Set(restsOn)] }]
  })
}

/** a, b and c. */
function listed(names: readonly string[], last = 'and'): string {
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} ${last} ${names.at(-1) ?? ''}`
}

/** `order_items` → Order items. */
function titled(name: string): string {
  const words = name.replaceAll(/[_\s]+/g, ' ').trim()
  return words.charAt(0).toUpperCase() + words.slice(1)
}
