// Pure: what binds a row of the audit to the row before it, and vouches for the end of a chain. Everything is an
// HMAC-SHA-256 with a key derived from the root key, so that whoever has the database alone can make none of it.
import { hash, timingSafeEqual } from 'node:crypto'
import type { Selectable } from 'kysely'
import type { AuditChainTable, AuditGapTable, AuditTable } from '../store/tables.ts'

/** What of a row is bound, in this order for ever: a later column may change nothing for rows that do not have it. */
export const CONTENT = [
  'id',
  'at',
  'team_id',
  'datasource_id',
  'account_id',
  'key_id',
  'via',
  'action',
  'outcome',
  'code',
  'blocked',
  'query',
  'printed',
  'row_count',
  'bytes',
  'duration_ms',
  'times',
  'client',
  'redacted',
] as const satisfies readonly (keyof AuditTable)[]

export type Stored = Selectable<AuditTable>
/** A row without its place in a chain. */
export type Content = Pick<Stored, (typeof CONTENT)[number]>
export type Chain = Selectable<AuditChainTable>
export type Gap = Selectable<AuditGapTable>

/** The first and the last number of the chains there are; between them none may lack. */
export interface Registry {
  readonly first: number
  readonly last: number
  /** When the first one ever was begun. */
  readonly since: string
}

export interface Seal {
  /** Of a row that has no place in a chain yet: it was made by one of our processes. */
  alone(row: Content): string
  /** Of a row at its place, behind the row with the link `before` ('' for the first). */
  link(before: string, chain: string, seq: number, row: Content): string
  chain(chain: Omit<Chain, 'signature' | 'batch'>): string
  gap(gap: Omit<Gap, 'signature'>): string
  registry(registry: Registry): string
}

/** `key`: 32 bytes, secrets.derive('audit chain'). */
export function sealWith(key: Uint8Array): Seal {
  const hmac = hmacWith(key)
  return {
    alone: (row) => hmac(['row', ...bound(row)]),
    link: (before, chain, seq, row) => hmac(['link', before, chain, seq, ...bound(row)]),
    chain: (of) => hmac(['chain', of.chain, of.number, of.opened_at, of.head_seq, of.head_link]),
    gap: (of) => hmac(['gap', of.chain, of.first_seq, of.last_seq, of.last_link, of.until]),
    registry: (of) => hmac(['registry', of.first, of.last, of.since]),
  }
}

/** Compares two seals; how long it takes says nothing of where they differ. */
export function sameSeal(made: string, found: string | null): boolean {
  const [a, b] = [Buffer.from(made), Buffer.from(found ?? '')]
  return a.length === b.length && timingSafeEqual(a, b)
}

function bound(row: Content): unknown[] {
  return CONTENT.map((column) => row[column])
}

const BLOCK_BYTES = 64

/** RFC 2104, of two hashes in one go each: node's own Hmac object costs four times as much as the rest of a row. */
function hmacWith(key: Uint8Array): (parts: readonly unknown[]) => string {
  const inner = new Uint8Array(BLOCK_BYTES).fill(0x36)
  const outer = new Uint8Array(BLOCK_BYTES).fill(0x5c)
  for (const [index, byte] of key.entries()) {
    inner[index] = byte ^ 0x36
    outer[index] = byte ^ 0x5c
  }
  return (parts) => {
    // As JSON: it keeps ('a', 'bc') apart from ('ab', 'c'), null from '' and 1 from '1'.
    const within = hash('sha256', Buffer.concat([inner, Buffer.from(JSON.stringify(parts))]), 'buffer')
    return hash('sha256', Buffer.concat([outer, within]), 'base64url')
  }
}
