import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Table } from './read-description.ts'
import { schemaLine, tableText } from './table-text.ts'

function table(name: string, columns: readonly string[]): Table {
  return {
    schema: 'public',
    table: name,
    columnsRestricted: false,
    estimatedRows: null,
    description: null,
    documentation: null,
    columns: columns.map((column) => ({
      name: column,
      type: 'text',
      nullable: true,
      primaryKey: false,
      references: null,
      description: null,
      stats: null,
    })),
  }
}

const columnsOf = (columns: readonly string[], kind: 'POSTGRES' | 'MONGODB' | 'BIGQUERY') =>
  /\((.*)\)/s.exec(tableText(table('t', columns), 'columns', kind))?.[1]

test('reserved words and other names that need quotes get the quotes of the query language', () => {
  assert.equal(schemaLine('user', 'POSTGRES'), '["user"]')
  assert.equal(
    columnsOf(['order', 'ordered', 'Id', 'a"b'], 'POSTGRES'),
    '"order" text, ordered text, "Id" text, "a""b" text',
  )
  assert.equal(
    columnsOf(['group', 'Id', 'address.city', 'a.order'], 'BIGQUERY'),
    '`group` text, Id text, address.city text, a.`order` text',
  )
  assert.equal(columnsOf(['order', 'a b'], 'MONGODB'), 'order, "a b"')
})

test('a line break in the name of a column starts no new line', () => {
  const breaks = ['\n', '\u0085', '\u2028', '\u2029']
  for (const kind of ['POSTGRES', 'MONGODB', 'BIGQUERY'] as const) {
    const text = tableText(
      table(
        't',
        breaks.map((char) => `a${char}[b]`),
      ),
      'columns',
      kind,
    )
    assert.doesNotMatch(text, /[\n\u0085\u2028\u2029]/, kind)
  }
})
