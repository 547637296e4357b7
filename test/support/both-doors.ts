// Asks one query through both doors, REST and the connector in both eras, and compares the outcomes.
import assert from 'node:assert/strict'
import { Agent, ERAS } from './agent.ts'
import type { TestApp } from './app.ts'

export interface BothDoors {
  readonly app: TestApp
  /** An API key. */
  readonly token: string
  readonly place: { readonly teamId: string; readonly datasourceId: string }
}

/** The default of the connector. */
const LIMIT = 100

interface Body {
  readonly code?: string
  readonly rows?: readonly unknown[]
  readonly [field: string]: unknown
}

/** `isOrdered`: the query fixes the order of its rows. */
export async function sameThroughBothDoors(doors: BothDoors, query: object, isOrdered: boolean): Promise<void> {
  const { app, token, place } = doors
  const path = `/teams/${place.teamId}/datasources/${place.datasourceId}/query`
  const body = 'limit' in query ? query : { ...query, limit: LIMIT }
  const byRest = async (): Promise<Body> => (await app.ask('POST', path, { token, body })).json
  const rest = await byRest()
  const agent = new Agent(app, token)
  for (const era of ERAS) {
    const { json } = await agent.call(era, 'run_query', { ...place, ...query })
    // A text that no JSON may hold is refused before the tool, with the same code.
    if (json.result === undefined) assert.equal(json.error.data.code, rest.code)
    else await compare(json.result.structuredContent, rest, byRest, isOrdered)
  }
}

async function compare(tool: Body, rest: Body, byRest: () => Promise<Body>, isOrdered: boolean): Promise<void> {
  // A query at the deadline may end before or in the database.
  if (isLate(rest) || isLate(tool)) return
  assert.equal(tool.code, rest.code, JSON.stringify([tool, rest]).slice(0, 1_000))
  // The tool checks its arguments before the driver, and names them in its own words.
  if (rest.code === 'INVALID_REQUEST') return
  if (rest.code !== undefined) return assert.deepEqual(tool, rest)
  assert.deepEqual(tool['columns'], rest['columns'])
  if (String(tool['note']).includes('bytes')) return
  assert.deepEqual([tool['rowCount'], tool['truncated']], [rest['rowCount'], rest['truncated']])
  if (tool['truncated'] === true && !isOrdered) return
  const rows = ({ rows = [] }: Body) => (isOrdered ? rows : unordered(rows))
  try {
    assert.deepEqual(rows(tool), rows(rest))
  } catch (error) {
    // A query of a clock or of random rows has other rows each time.
    const again = JSON.stringify(rows(await byRest()))
    if (again === JSON.stringify(rows(rest))) throw error
  }
}

/** Sorts every list, also those in a row: MongoDB does not fix the order of a set ($addToSet) or of a join's documents. */
function unordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((each) => JSON.stringify(unordered(each))).sort()
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, unordered(each)]))
}

function isLate({ code }: Body): boolean {
  return code === 'QUERY_TIMEOUT' || code === 'OVERLOADED'
}
