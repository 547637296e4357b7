// Writes tables as compact text for a language model. JSON would take ten times as many tokens. A line break in a name
// or text never starts a new line, so data cannot imitate a table.
import { RESERVED_IN_GOOGLESQL, RESERVED_IN_POSTGRES } from '../reserved-words.ts'
import type { Table } from './read-description.ts'

export const DETAILS = ['names', 'columns', 'full'] as const
export type Detail = (typeof DETAILS)[number]
type Kind = 'POSTGRES' | 'MONGODB' | 'BIGQUERY'
type Column = Table['columns'][number]

/** Returns the first line of the text, which explains the format. `word` is what the database calls a table. */
export function legend(detail: Detail, word: string): string {
  if (detail === 'names') return `# ${word} ~rows, columns: description`
  const columns = 'column type, pk: primary key, !: not null, >: references'
  if (detail === 'columns') return `# ${word}(${columns}) ~rows`
  return `# ${word} ~rows, then a line for each column (${columns}) with description and {statistics}`
}

export function tableText(table: Table, detail: Detail, kind: Kind): string {
  const name = `${written(table.table, kind)}`
  const rows = table.estimatedRows === null ? '' : ` ~${table.estimatedRows}`
  if (detail === 'names') {
    const about = brief(table.description)
    return `${name}${rows}, ${table.columns.length}${about === '' ? '' : `: ${about}`}`
  }
  const columns = table.columns.map((column) => columnText(column, table.schema, kind))
  if (detail === 'columns') return `${name}(${columns.join(', ')})${rows}`
  return [
    `${name}${rows}`,
    ...(table.description === null ? [] : [`  ${line(table.description)}`]),
    ...table.columns.map((column, at) => `  ${columns[at]}${aboutColumn(column)}`),
    ...(table.indexes ?? []).map(
      ({ keys, unique }) =>
        `  index${unique ? ' unique' : ''}: ${keys.map((key) => `${key.path} ${key.direction}`).join(', ')}`,
    ),
    ...documentationLines(table),
  ].join('\n')
}

export function schemaLine(schema: string, kind: Kind): string {
  return `[${written(schema, kind)}]`
}

function columnText({ name, type, nullable, primaryKey, references }: Column, schema: string, kind: Kind): string {
  const typed = kind === 'MONGODB' ? '' : ` ${line(kind === 'POSTGRES' ? shortType(type) : type)}`
  const key = primaryKey ? ' pk' : nullable ? '' : '!'
  return `${written(name, kind)}${typed}${key}${references === null ? '' : ` >${referenceText(references, schema, kind)}`}`
}

function referenceText(to: NonNullable<Column['references']>, schema: string, kind: Kind): string {
  const path = to.schema === schema ? [to.table, to.column] : [to.schema, to.table, to.column]
  return path.map((name) => written(name, kind)).join('.')
}

/** The short type names of PostgreSQL, which take a quarter of the tokens of the long names. */
const SHORT: readonly (readonly [RegExp, string])[] = [
  [/^character varying\b/, 'varchar'],
  [/^character\b/, 'char'],
  [/^(timestamp|time)(\(\d\))? with time zone\b/, '$1tz$2'],
  [/^(timestamp|time)(\(\d\))? without time zone\b/, '$1$2'],
  [/^double precision\b/, 'float8'],
]

function shortType(type: string): string {
  const found = SHORT.find(([pattern]) => pattern.test(type))
  return found === undefined ? type : type.replace(...found)
}

/** A name that matches needs no quotes, unless it is a reserved word. */
const PLAIN = {
  POSTGRES: /^[a-z_][a-z0-9_$]*$/,
  BIGQUERY: /^[A-Za-z_][A-Za-z0-9_]*$/,
  MONGODB: /^[^\s\p{Cc}\p{Zl}\p{Zp}"(),:[\]]+$/u,
} as const

/** Returns a name as in a query. In BigQuery, a column with dots is a path of nested fields. */
function written(name: string, kind: Kind): string {
  if (kind === 'BIGQUERY') return name.split('.').map(inGoogleSql).join('.')
  if (PLAIN[kind].test(name) && !(kind === 'POSTGRES' && RESERVED_IN_POSTGRES.has(name))) return name
  return kind === 'POSTGRES' ? `"${line(name.replaceAll('"', '""'))}"` : line(JSON.stringify(name))
}

function inGoogleSql(name: string): string {
  const isPlain = PLAIN.BIGQUERY.test(name) && !RESERVED_IN_GOOGLESQL.has(name.toUpperCase())
  return isPlain ? name : `\`${line(name)}\``
}

function aboutColumn({ description, stats }: Column): string {
  const about = description === null ? '' : `: ${line(description)}`
  const known = stats === null ? '' : statsText(stats)
  return `${about}${known === '' ? '' : ` {${known}}`}`
}

function statsText({ nullFrac, distinctCount, values, range, keys, signals }: NonNullable<Column['stats']>): string {
  return [
    ...(nullFrac === undefined || nullFrac === 0 ? [] : [`${percent(nullFrac)} null`]),
    ...(distinctCount === undefined ? [] : [`${distinctCount} distinct`]),
    ...(values === undefined || values.length === 0
      ? []
      : [
          `values ${values.map(({ value, share }) => `${shown(value)}${share === undefined ? '' : ` ${percent(share)}`}`).join(', ')}`,
        ]),
    ...(range === undefined ? [] : [`${shown(range.min)} to ${shown(range.max)}`]),
    ...(keys === undefined
      ? []
      : [`keys ${keys.map(({ key, types }) => `${line(key)} ${types.join('|')}`).join(', ')}`]),
    ...signals.map(line),
  ].join('; ')
}

function documentationLines({ documentation }: Table): string[] {
  if (documentation === null) return []
  const { statements, examples } = documentation
  return [
    ...statements.map((statement) => `  - ${line(statement)}`),
    ...(examples === undefined ? [] : [`  examples: ${line(examples)}`]),
  ]
}

function shown(value: unknown): string {
  return typeof value === 'string' ? line(value) : JSON.stringify(value)
}

function percent(share: number): string {
  return `${Number((share * 100).toPrecision(2))}%`
}

function line(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ').trim()
}

const BRIEF_CHARS = 100

function brief(text: string | null): string {
  const first = /^.*?[.!?](?=\s|$)/s.exec(text ?? '')?.[0] ?? text ?? ''
  const short = line(first)
  return short.length <= BRIEF_CHARS ? short : `${short.slice(0, BRIEF_CHARS).toWellFormed()}…`
}
