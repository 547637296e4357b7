// A chain of rows shows whether somebody has changed the audit. Each row has a link: an HMAC-SHA-256 of the row and of
// the previous link. The end of the chain is signed in the same way. The key is derived from the root key, so access to
// the database alone is not enough to forge a row.
import { hash, timingSafeEqual } from 'node:crypto'
import type { Selectable } from 'kysely'
import type { AuditChainTable, AuditGapTable, AuditTable } from '../../store/tables.ts'

/**
 * The columns that the HMAC covers. Their order must never change. `detail` is left out if it is null, because older
 * rows do not have it and their HMAC must stay valid.
 */
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
  'detail',
] as const satisfies readonly (keyof AuditTable)[]

export type Stored = Selectable<AuditTable>
export type Content = Pick<Stored, (typeof CONTENT)[number]>
export type Chain = Selectable<AuditChainTable>
export type Gap = Selectable<AuditGapTable>

/** The numbers of the first and last chain. All chains between them must exist. */
export interface Registry {
  readonly first: number
  readonly last: number
  /** When the very first chain started (ISO 8601). */
  readonly since: string
  /** How many rows existed when the first chain started. Only these rows are without a chain. */
  readonly before: number
}

export interface Seal {
  /** Seals a row that is not linked yet. The seal proves that this service wrote the row. */
  alone(row: Content): string
  /** Links a row's text to the previous row, whose link is `before` ('' for the first row). */
  link(before: string, chain: string, seq: number, text: string): string
  linkOf(before: string, chain: string, seq: number, text: Uint8Array): string
  chain(chain: Omit<Chain, 'signature'>): string
  gap(gap: Omit<Gap, 'signature'>): string
  registry(registry: Registry): string
}

/** `key` has 32 bytes. */
export function sealWith(key: Uint8Array): Seal {
  const { hmac, hmacBehind } = hmacWith(key)
  return {
    alone: (row) => hmac(openArray(['row']) + textOf(row).slice(1)),
    link: (before, chain, seq, text) => hmac(openArray(['link', before, chain, seq]) + text.slice(1)),
    linkOf: (before, chain, seq, text) => hmacBehind(openArray(['link', before, chain, seq]), text.subarray(1)),
    chain: (of) => hmac(jsonOf(['chain', of.chain, of.number, of.opened_at, of.head_seq, of.head_link, of.batch])),
    gap: (of) => hmac(jsonOf(['gap', of.chain, of.first_seq, of.last_seq, of.last_link, of.until])),
    registry: (of) => hmac(jsonOf(['registry', of.first, of.last, of.since, of.before])),
  }
}

/** Compares in constant time. */
export function sameSeal(made: string, found: string | null): boolean {
  const [a, b] = [Buffer.from(made), Buffer.from(found ?? '')]
  return a.length === b.length && timingSafeEqual(a, b)
}

/** JSON distinguishes ('a', 'bc') from ('ab', 'c'), null from '', and 1 from '1'. */
function jsonOf(parts: readonly unknown[]): string {
  return JSON.stringify(parts)
}

/** A null `detail` is left out. */
export function textOf(row: Content): string {
  const values: unknown[] = contentOf(row)
  if (row.detail === null) values.pop()
  return jsonOf(values)
}

function openArray(head: readonly unknown[]): string {
  return `${jsonOf(head).slice(0, -1)},`
}

type ValuesOf<Names extends readonly (keyof Content)[]> = { -readonly [N in keyof Names]: Content[Names[N]] }
type ContentValues = ValuesOf<typeof CONTENT>

/** The columns are written one by one, because a loop over their names would take longer than the hash. */
export function contentOf(row: Content): ContentValues {
  return [
    row.id,
    row.at,
    row.team_id,
    row.datasource_id,
    row.account_id,
    row.key_id,
    row.via,
    row.action,
    row.outcome,
    row.code,
    row.blocked,
    row.query,
    row.printed,
    row.row_count,
    row.bytes,
    row.duration_ms,
    row.times,
    row.client,
    row.redacted,
    row.detail,
  ]
}

function contentFrom(values: ContentValues): Content {
  return {
    id: values[0],
    at: values[1],
    team_id: values[2],
    datasource_id: values[3],
    account_id: values[4],
    key_id: values[5],
    via: values[6],
    action: values[7],
    outcome: values[8],
    code: values[9],
    blocked: values[10],
    query: values[11],
    printed: values[12],
    row_count: values[13],
    bytes: values[14],
    duration_ms: values[15],
    times: values[16],
    client: values[17],
    redacted: values[18],
    detail: values[19],
  }
}

/** Parses what textOf() wrote. Throws if the text is not an audit row. */
export function rowOf(line: string): Content {
  const values: unknown = JSON.parse(line)
  if (Array.isArray(values) && values.length === CONTENT.length - 1) values.push(null)
  if (!isContent(values)) throw new TypeError('not an audit row')
  return contentFrom(values)
}

/** The HMAC proves that the content is unchanged, so only the number and types of the values are checked. */
function isContent(values: unknown): values is ContentValues {
  return Array.isArray(values) && values.length === CONTENT.length && values.every(isScalar)
}

function isScalar(value: unknown): boolean {
  return value === null || typeof value === 'string' || typeof value === 'number'
}

const BLOCK_BYTES = 64
const HASH_BYTES = 32

/** A longer row gets its own buffer. */
const SCRATCH_BYTES = 16_384

interface Hmac {
  hmac(text: string): string
  /** Returns the HMAC of `head` followed by `rest`. `head` must be ASCII. */
  hmacBehind(head: string, rest: Uint8Array): string
}

/** HMAC (RFC 2104) by two calls of hash(). Node's Hmac takes four times as long as all other work for a row. */
function hmacWith(key: Uint8Array): Hmac {
  const inner = Buffer.alloc(SCRATCH_BYTES, 0x36)
  const outer = Buffer.alloc(BLOCK_BYTES + HASH_BYTES, 0x5c)
  for (const [index, byte] of key.entries()) {
    inner[index] = byte ^ 0x36
    outer[index] = byte ^ 0x5c
  }
  const sealed = (framed: Uint8Array): string => {
    // Writes the hash as a binary string, because allocating a buffer of 32 bytes costs more.
    outer.write(hash('sha256', framed, 'binary'), BLOCK_BYTES, 'latin1')
    return hash('sha256', outer, 'base64url')
  }
  const room = (bytes: number): Buffer =>
    bytes <= SCRATCH_BYTES - BLOCK_BYTES ? inner : Buffer.concat([inner.subarray(0, BLOCK_BYTES)], BLOCK_BYTES + bytes)
  return {
    hmac(text) {
      // A UTF-16 code unit takes at most three bytes in UTF-8.
      const frame = room(text.length * 3)
      return sealed(frame.subarray(0, BLOCK_BYTES + frame.write(text, BLOCK_BYTES)))
    },
    hmacBehind(head, rest) {
      const frame = room(head.length + rest.length)
      const from = BLOCK_BYTES + frame.write(head, BLOCK_BYTES, 'latin1')
      frame.set(rest, from)
      return sealed(frame.subarray(0, from + rest.length))
    },
  }
}
