// The tools whoami, list_teams and list_datasources, with which an agent finds out what it can reach.
import { z } from 'zod'
import type { Arrival } from '../auth/caller.ts'
import { AppError } from '../errors.ts'
import { inSlices } from '../event-loop-slices.ts'
import type { Operations } from '../operations/order-of-checks.ts'
import { Id, readArguments } from './tool-arguments.ts'
import type { JsonObject } from './json-object.ts'

type Ops = Pick<Operations, 'listTeams' | 'listDatasources'>

const Nothing = z.strictObject({})
const OfTeam = z.strictObject({ teamId: Id.exactOptional() })

/** Shows what this connection may do, so that an agent can find out why a call was refused. */
export async function whoami(
  operations: Pick<Operations, 'getAccount'>,
  arrival: Arrival,
  args: JsonObject,
): Promise<JsonObject> {
  readArguments(Nothing, args)
  return { ...(await operations.getAccount(arrival, {})), access: accessOf(arrival.caller) }
}

/** Null means no restriction. */
function accessOf(caller: Arrival['caller']): JsonObject {
  if (caller.kind === 'session') return { scopes: [], teamIds: null, datasourceIds: null, expiresAt: null }
  const { scopes, teamIds, datasourceIds, endedTeamIds, expiresAt } = caller
  return {
    scopes: [...scopes],
    teamIds: teamIds === null ? null : [...teamIds].filter((id) => !endedTeamIds.has(id)),
    datasourceIds: datasourceIds === null ? null : [...datasourceIds],
    expiresAt,
  }
}

export async function listTeams(operations: Ops, arrival: Arrival, args: JsonObject): Promise<JsonObject> {
  readArguments(Nothing, args)
  return { teams: await operations.listTeams(arrival, {}) }
}

/**
 * If the requested team refuses the call, throws the refusal. If one of all teams refuses, `note` contains the refusal.
 */
export async function listDatasources(operations: Ops, arrival: Arrival, args: JsonObject): Promise<JsonObject> {
  const { teamId } = readArguments(OfTeam, args)
  const teams = await operations.listTeams(arrival, {})
  if (teamId !== undefined) {
    const name = teams.find((team) => team.id === teamId)?.name
    return { datasources: await ofTeam(operations, arrival, teamId, name) }
  }
  const [datasources, notes]: [ShownDatasource[], string[]] = [[], []]
  for await (const list of datasourcesByTeam(operations, arrival, teams, notes)) {
    if (datasources.length >= LISTED_MAX) {
      notes.push(MORE)
      break
    }
    datasources.push(...list)
  }
  return { datasources, ...(notes.length > 0 && { note: notes.join(' ') }) }
}

/** Bounds the answer for all teams. A team has at most 500 datasources, and the last team is listed whole. */
const LISTED_MAX = 500
const MORE =
  'There are more datasources in other teams. To list the datasources of one team, give its teamId. list_teams has the ids.'

/**
 * Yields the datasources of one team after the other, without empty lists, so that a caller can stop early. Adds the
 * refusals of teams to `notes`.
 */
export async function* datasourcesByTeam(
  operations: Ops,
  arrival: Arrival,
  teams: Awaited<ReturnType<Ops['listTeams']>>,
  notes: string[] = [],
): AsyncGenerator<readonly ShownDatasource[]> {
  const pause = inSlices()
  for (const { id, name, status } of teams) {
    if (status !== 'ACTIVE') continue
    await pause()
    try {
      const list = await ofTeam(operations, arrival, id, name)
      if (list.length > 0) yield list
    } catch (error) {
      if (!(error instanceof AppError) || !REFUSES_A_TEAM.has(error.code)) throw error
      notes.push(`${name} is left out: ${error.message}`)
    }
  }
}

/** The codes with which a team may refuse a call while the other teams are listed. */
const REFUSES_A_TEAM: ReadonlySet<string> = new Set(['TEAM_FORBIDDEN', 'TEAM_NOT_OPENED', 'SECOND_FACTOR_REQUIRED'])

interface ShownDatasource {
  readonly id: string
  readonly teamId: string
  readonly teamName?: string
  readonly name: string
  readonly [field: string]: unknown
}

async function ofTeam(
  operations: Ops,
  arrival: Arrival,
  teamId: string,
  teamName: string | undefined,
): Promise<readonly ShownDatasource[]> {
  const items = await operations.listDatasources(arrival, { params: { teamId } })
  return items.map(({ id, name, type, status, database, exposedTableCount, lastError }) => ({
    id,
    teamId,
    ...(teamName !== undefined && { teamName }),
    name,
    type,
    status,
    database,
    exposedTableCount,
    lastError,
  }))
}
