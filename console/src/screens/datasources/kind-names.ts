import type { Datasource } from '../../api/types.ts'

export type Kind = Datasource['type']

export const KINDS: readonly Kind[] = ['POSTGRES', 'MONGODB', 'BIGQUERY']

export const KIND_NAMES: Readonly<Record<Kind, string>> = {
  POSTGRES: 'PostgreSQL',
  MONGODB: 'MongoDB',
  BIGQUERY: 'BigQuery',
}

export const TABLE_WORDS: Readonly<Record<Kind, readonly [one: string, many: string]>> = {
  POSTGRES: ['table', 'tables'],
  MONGODB: ['collection', 'collections'],
  BIGQUERY: ['table', 'tables'],
}
