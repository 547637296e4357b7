// Defines what a migration of the store is.
import type { Transaction } from 'kysely'
import type { Tables } from './tables.ts'

export type DialectName = 'sqlite' | 'postgres'

export interface Migration {
  /** Names are unique, and their order is the order of migrations. The migrations table stores them. */
  readonly name: string
  /** Runs on both dialects. */
  up(tx: Transaction<Tables>, dialect: DialectName): Promise<void>
}
