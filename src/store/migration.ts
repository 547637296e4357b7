import type { Transaction } from 'kysely'
import type { Tables } from './tables.ts'

export type DialectName = 'sqlite' | 'postgres'

export interface Migration {
  /** Names are unique, and their order is the order of the migrations. */
  readonly name: string
  up(tx: Transaction<Tables>, dialect: DialectName): Promise<void>
}
