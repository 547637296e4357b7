// Sends one query over REST and over the agent connector, in both generations of its protocol. The outcomes must be the
// same.
import assert from 'node:assert/strict'
import { Agent, ERAS } from './agent.ts'
import type { TestApp } from './app.ts'

export interface BothDoors {
  readonly app: TestApp
  readonly token: string
  readonly place: { readonly teamId: string; readonly datasourceId: string }
}

/** The connector's default limit on rows. */
const LIMIT = 100

interface Body {
  readonly code?: string
  readonly rows?: readonly unknown[]
  readonly [field: string]: unknown
}

/**
 * What two runs of a query have in common: the rows in order, the rows in any order, or only the columns and the number
 * of rows.
 */
export type Rows = 'ordered' | 'unordered' | 'random'

export async function sameThroughBothDoors(doors: BothDoors, query: object, rows: Rows = 'unordered'): Promise<void> {
  const { app, token, place } = doors
  const path = `/teams/${place.teamId}/datasources/${place.datasourceId}/query`
  const body = 'limit' in query ? query : { ...query, limit: LIMIT }
  const { json: rest } = await app.ask('POST', path, { token, body })
  const agent = new Agent(app, token)
  for (const era of ERAS) {
    const { json } = await agent.call(era, 'run_query', { ...place, ...query })
    // JSON cannot contain every string. A query that it cannot contain is refused before the tool sees it, with the
    // same code.
    if (json.result === undefined) assert.equal(json.error.data.code, rest.code)
    else compare(json.result.structuredContent, rest, rows)
  }
}

function compare(tool: Body, rest: Body, rows: Rows): void {
  // A query that reaches its deadline may end in the database or before it, so the outcomes may differ.
  if (isLate(rest) || isLate(tool)) return
  assert.equal(tool.code, rest.code, JSON.stringify([tool, rest]).slice(0, 1_000))
  // The tool checks its arguments before the driver does, so the sentences about invalid arguments may differ.
  if (rest.code === 'INVALID_REQUEST') return
  if (rest.code !== undefined) return assert.deepEqual(tool, rest)
  assert.deepEqual(tool['columns'], rest['columns'])
  if (String(tool['note']).includes('bytes')) return
  assert.deepEqual([tool['rowCount'], tool['truncated']], [rest['rowCount'], rest['truncated']])
  if (rows === 'ordered') assert.deepEqual(tool.rows, rest.rows)
  else if (rows === 'unordered' && tool['truncated'] !== true) assert.deepEqual(asSet(tool.rows), asSet(rest.rows))
}

/** Makes rows comparable in any order. The order of the values in a row counts. */
function asSet(rows: Body['rows'] = []): unknown {
  return unordered(rows.map((row) => ({ ...Object(row) })))
}

/**
 * Sorts every list, even inside a value, and the fields of every object. Without a sort, a database may return rows and
 * collected values in any order. For example, mongod orders $addToSet, $group and the fields of a time series
 * differently from run to run.
 */
function unordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((each) => JSON.stringify(unordered(each))).sort()
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1))
  return Object.fromEntries(entries.map(([name, each]) => [name, unordered(each)]))
}

function isLate({ code }: Body): boolean {
  return code === 'QUERY_TIMEOUT' || code === 'OVERLOADED'
}
