// A resource is the description of one table. Only tables with published documentation are listed. All texts come from
// the description that REST returns, so no resource reveals a hidden table or column.
import { z } from 'zod'
import type { Arrival } from '../auth/caller.ts'
import { invalidRequest, notFound, type AppError } from '../errors.ts'
import { descriptionOf, type Description, type Table } from '../compact-text/read-description.ts'
import { tableText } from '../compact-text/table-text.ts'
import type { Operations } from '../operations/order-of-checks.ts'
import { ownJson } from '../operations/prebuilt-json.ts'
import { inSlices } from '../event-loop-slices.ts'
import { datasourcesByTeam } from './account-tools.ts'

export type ResourceOps = Pick<Operations, 'listTeams' | 'listDatasources' | 'describeDatasource'>

const PAGE_MAX = 100
const DESCRIBED_MAX = 10
const MIME = 'text/markdown'

export const TEMPLATE = {
  uriTemplate: 'vitrine://teams/{teamId}/datasources/{datasourceId}/tables/{schema}/{table}',
  name: 'documentation',
  title: 'Documentation of a table',
  description: 'Columns, statistics and published documentation of one exposed table. Names are percent-encoded.',
  mimeType: MIME,
} as const

interface Resource {
  readonly uri: string
  readonly name: string
  readonly title: string
  readonly description?: string
  readonly mimeType: string
}

interface ResourcePage {
  readonly resources: Resource[]
  readonly nextCursor?: string
}

/** `at` is the position of the next table of a datasource. */
const Cursor = z.strictObject({ teamId: z.string(), id: z.string(), at: z.int().min(0) })

/** Reads only the teams and datasources of this page. Throws INVALID_REQUEST for an invalid cursor. */
export async function listResources(
  operations: ResourceOps,
  arrival: Arrival,
  cursor: string | undefined,
): Promise<ResourcePage> {
  let from = cursor === undefined ? null : readCursor(cursor)
  const teams = await operations.listTeams(arrival, {})
  const team = from === null ? 0 : teams.findIndex((each) => each.id === from?.teamId)
  if (team === -1) throw badCursor()
  const resources: Resource[] = []
  const turn = inSlices()
  let describedCount = 0
  for await (const list of datasourcesByTeam(operations, arrival, teams.slice(team))) {
    const first = from === null ? 0 : list.findIndex((each) => each.id === from?.id)
    if (first === -1) throw badCursor()
    for (const { id, teamId, name } of list.slice(first)) {
      if (describedCount++ >= DESCRIBED_MAX) return { resources, nextCursor: writeCursor({ teamId, id, at: 0 }) }
      const description = await described(operations, arrival, teamId, id)
      for (let at = from?.at ?? 0; at < description.tableCount; at++) {
        await turn()
        if (resources.length >= PAGE_MAX) return { resources, nextCursor: writeCursor({ teamId, id, at }) }
        const table = description.table(at)
        if (table.documentation !== null) resources.push(resourceOf(table, { teamId, id, name }))
      }
      from = null
    }
  }
  if (from !== null) throw badCursor()
  return { resources }
}

function resourceOf(table: Table, { teamId, id, name }: { teamId: string; id: string; name: string }): Resource {
  const parts = [teamId, 'datasources', id, 'tables', table.schema, table.table].map(encodeURIComponent)
  return {
    uri: `vitrine://teams/${parts.join('/')}`,
    name: `${table.schema}.${table.table}`,
    title: `${table.table} (${name})`,
    ...(table.description !== null && { description: table.description }),
    mimeType: MIME,
  }
}

/** Throws NOT_FOUND if the URI is invalid, or if the table is hidden or does not exist. */
export async function readResource(
  operations: ResourceOps,
  arrival: Arrival,
  uri: string,
): Promise<{ readonly uri: string; readonly mimeType: string; readonly text: string }> {
  const match = /^vitrine:\/\/teams\/([^/]+)\/datasources\/([^/]+)\/tables\/([^/]+)\/([^/]+)$/.exec(uri)
  const [teamId, id, schema, name] = (match ?? []).slice(1).map(decoded)
  if (teamId === undefined || id === undefined) throw notFound()
  const description = await described(operations, arrival, teamId, id)
  const turn = inSlices()
  for (let at = 0; at < description.tableCount; at++) {
    await turn()
    const table = description.table(at)
    if (table.schema !== schema || table.table !== name) continue
    const [head = '', ...lines] = tableText(table, 'full', description.head.type).split('\n')
    return { uri, mimeType: MIME, text: [`# ${head}`, ...lines].join('\n') }
  }
  throw notFound()
}

async function described(operations: ResourceOps, arrival: Arrival, teamId: string, id: string): Promise<Description> {
  const described = await operations.describeDatasource(arrival, { params: { teamId, id }, query: {} })
  return descriptionOf({ ...described, json: ownJson(described.json) })
}

function decoded(part: string): string | undefined {
  try {
    return decodeURIComponent(part)
  } catch {
    return undefined
  }
}

function writeCursor(cursor: z.infer<typeof Cursor>): string {
  return Buffer.from(JSON.stringify(cursor)).toString('base64url')
}

function readCursor(text: string): z.infer<typeof Cursor> {
  try {
    return Cursor.parse(JSON.parse(Buffer.from(text, 'base64url').toString()))
  } catch {
    throw badCursor()
  }
}

function badCursor(): AppError {
  return invalidRequest(['cursor: not a cursor of this service, or expired'])
}
