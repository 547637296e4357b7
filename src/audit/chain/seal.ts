// Pure: what binds a row of the audit to the row before it, and vouches for the end of a chain. Everything is an
// HMAC-SHA-256 with a key derived from the root key, so that whoever has the database alone can make none of it.
import { hash, timingSafeEqual } from 'node:crypto'
import type { Selectable } from 'kysely'
import type { AuditChainTable, AuditGapTable, AuditTable } from '../../store/tables.ts'

/**
 * What of a row is bound, in this order for ever: a later column may change nothing for rows that do not have it. So
 * `detail` is the last value of the array, and a row without it has an array that is one value shorter.
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
  /** How many rows of no chain there were then: there are never more. */
  readonly before: number
}

export interface Seal {
  /** Of a row that has no place in a chain yet: it was made by one of our processes. */
  alone(row: Content): string
  /** Of a row, as its text says it, at its place behind the row with the link `before` ('' for the first). */
  link(before: string, chain: string, seq: number, text: string): string
  /** The same of a text in UTF-8. */
  linkOf(before: string, chain: string, seq: number, text: Uint8Array): string
  chain(chain: Omit<Chain, 'signature'>): string
  gap(gap: Omit<Gap, 'signature'>): string
  registry(registry: Registry): string
}

/** `key`: 32 bytes, secrets.derive('audit chain'). */
export function sealWith(key: Uint8Array): Seal {
  const { hmac, hmacBehind } = hmacWith(key)
  return {
    alone: (row) => hmac(begun(['row']) + textOf(row).slice(1)),
    link: (before, chain, seq, text) => hmac(begun(['link', before, chain, seq]) + text.slice(1)),
    linkOf: (before, chain, seq, text) => hmacBehind(begun(['link', before, chain, seq]), text.subarray(1)),
    chain: (of) => hmac(said(['chain', of.chain, of.number, of.opened_at, of.head_seq, of.head_link, of.batch])),
    gap: (of) => hmac(said(['gap', of.chain, of.first_seq, of.last_seq, of.last_link, of.until])),
    registry: (of) => hmac(said(['registry', of.first, of.last, of.since, of.before])),
  }
}

/** Compares two seals; how long it takes says nothing of where they differ. */
export function sameSeal(made: string, found: string | null): boolean {
  const [a, b] = [Buffer.from(made), Buffer.from(found ?? '')]
  return a.length === b.length && timingSafeEqual(a, b)
}

/** As JSON: it keeps ('a', 'bc') apart from ('ab', 'c'), null from '' and 1 from '1'. */
function said(parts: readonly unknown[]): string {
  return JSON.stringify(parts)
}

/** What a row says: the values of CONTENT as one JSON array, without the last where that is null. */
export function textOf(row: Content): string {
  const values: unknown[] = contentOf(row)
  if (row.detail === null) values.pop()
  return said(values)
}

/** A JSON array that goes on with what a row says behind its bracket. */
function begun(head: readonly unknown[]): string {
  return `${said(head).slice(0, -1)},`
}

type ValuesOf<Names extends readonly (keyof Content)[]> = { -readonly [N in keyof Names]: Content[Names[N]] }
/** The values of CONTENT. */
type ContentValues = ValuesOf<typeof CONTENT>

/** One by one: by their names, in a loop, it takes longer than the hash. */
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

/** The same backwards. */
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

/** Of a line that textOf() made; throws where it is none. */
export function rowOf(line: string): Content {
  const values: unknown = JSON.parse(line)
  if (Array.isArray(values) && values.length === CONTENT.length - 1) values.push(null)
  if (!isContent(values)) throw new TypeError('no row of the audit')
  return contentFrom(values)
}

/** Its seal tells the rest. */
function isContent(values: unknown): values is ContentValues {
  return Array.isArray(values) && values.length === CONTENT.length && values.every(isScalar)
}

function isScalar(value: unknown): boolean {
  return value === null || typeof value === 'string' || typeof value === 'number'
}

const BLOCK_BYTES = 64
const HASH_BYTES = 32

/** Room for what most rows come to as JSON; longer ones get their own. */
const SCRATCH_BYTES = 16_384

interface Hmac {
  hmac(text: string): string
  /** Of what begins with `head`, in ASCII, and goes on with `rest`. */
  hmacBehind(head: string, rest: Uint8Array): string
}

/** RFC 2104, of two hashes in one go each: node's own Hmac object costs four times as much as the rest of a row. */
function hmacWith(key: Uint8Array): Hmac {
  const inner = Buffer.alloc(SCRATCH_BYTES, 0x36)
  const outer = Buffer.alloc(BLOCK_BYTES + HASH_BYTES, 0x5c)
  for (const [index, byte] of key.entries()) {
    inner[index] = byte ^ 0x36
    outer[index] = byte ^ 0x5c
  }
  const sealed = (framed: Uint8Array): string => {
    // Its bytes as letters: a buffer of its own for 32 bytes costs more than they do.
    outer.write(hash('sha256', framed, 'binary'), BLOCK_BYTES, 'latin1')
    return hash('sha256', outer, 'base64url')
  }
  const room = (bytes: number): Buffer =>
    bytes <= SCRATCH_BYTES - BLOCK_BYTES ? inner : Buffer.concat([inner.subarray(0, BLOCK_BYTES)], BLOCK_BYTES + bytes)
  return {
    hmac(text) {
      // No character takes more than three bytes.
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
