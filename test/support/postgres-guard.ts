// Tests give SQL to the PostgreSQL guard, and get the printed SQL or the refusal.
import assert from 'node:assert/strict'
import type { Client } from 'pg'
import { unseal } from '../../src/drivers/confined.ts'
import type { Catalog, Limits, Param, Verdict } from '../../src/drivers/driver.ts'
import { confine } from '../../src/drivers/postgres/guard/confine.ts'
import { openParser, type ParserOptions } from '../../src/drivers/postgres/guard/parser-pool.ts'
import type { PostgresQuery } from '../../src/drivers/postgres/confined-query.ts'

export const CAPS: Limits = { rowCap: 1_000, maxResponseBytes: 1 << 20, timeoutMs: 1_000, maxCost: 1e9 }

type Asked = Partial<Limits> & { readonly limit?: number; readonly params?: readonly Param[] }

export interface Guard extends AsyncDisposable {
  judge(sql: string, exposed: Catalog, limits?: Asked): Promise<Verdict>
  /** Throws if the guard refuses. */
  confined(sql: string, exposed: Catalog, limits?: Asked): Promise<PostgresQuery>
  /** Defects that the guard has found in itself. */
  readonly reported: string[]
}

export async function openGuard(options: ParserOptions = {}): Promise<Guard> {
  const reported: string[] = []
  // A busy machine may need longer, so the deadline is longer than that of the service.
  const parser = await openParser({ report: (problem) => reported.push(problem), deadlineMs: 60_000, ...options })
  const { signal } = new AbortController()
  const judge: Guard['judge'] = async (text, exposed, { limit = null, params, ...limits } = {}) => {
    const body = { text, limit, ...(params && { params: { values: params, json: JSON.stringify(params) } }) }
    return confine(parser, body, exposed, { ...CAPS, ...limits }, signal)
  }
  return {
    reported,
    judge,
    confined: async (sql, exposed, limits) => {
      const verdict = await judge(sql, exposed, limits)
      if (verdict.kind !== 'confined') throw new Error(`${verdict.kind}: ${verdict.why} (${sql})`)
      return unseal<PostgresQuery>(verdict.query, 'POSTGRES')
    },
    [Symbol.asyncDispose]: () => parser[Symbol.asyncDispose](),
  }
}

/** Asserts that the printed text has the same rows, names and types as the caller's text. */
export async function assertSameAnswer(client: Client, sql: string, text: string): Promise<void> {
  const [printed, asked] = [await client.query(text), await client.query(sql)]
  assert.deepEqual(printed.rows, asked.rows)
  const shapes = [printed, asked].map(({ fields }) => fields.map(({ name, dataTypeID }) => [name, dataTypeID]))
  assert.deepEqual(shapes[0], shapes[1])
}

/** Returns one line: the printed SQL, `kind: name` of the blocked object, or `malformed`. */
export function say(verdict: Verdict): string {
  if (verdict.kind === 'confined') return unseal<PostgresQuery>(verdict.query, 'POSTGRES').text
  return verdict.kind === 'denied' ? `${verdict.blocked.kind}: ${verdict.blocked.name}` : 'malformed'
}
