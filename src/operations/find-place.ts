// Finds the team or datasource in the path, before the query string and the body are validated. Refuses path parameters
// that cannot be ids. teams/ and datasources/ decide who has access.
import type { Call, Caller } from '../auth/caller.ts'
import type { Route } from '../contract/route-type.ts'
import type { Reached } from '../datasources/require-reach.ts'
import { AppError, notFound } from '../errors.ts'
import type { DatasourceId, TeamId } from '../ids.ts'
import { asId } from '../ids.ts'
import type { Membership } from '../teams/require-membership.ts'

/** The access checks of teams/ and datasources/. */
export interface Places {
  /** Throws NOT_FOUND, TEAM_NOT_OPENED, SECOND_FACTOR_REQUIRED, ROLE_REQUIRED. */
  team(
    call: Call,
    teamId: TeamId,
    need: { role?: 'ADMIN' | 'OWNER'; invited?: boolean; withoutSecondFactor?: boolean },
  ): Promise<Membership>
  /** Throws SECOND_FACTOR_REQUIRED, then NOT_FOUND (the same text for every cause), then ROLE_REQUIRED. */
  datasource(call: Call, teamId: TeamId, id: DatasourceId, need: { role?: 'ADMIN' | 'OWNER' }): Promise<Reached>
  /** Like datasource() without a role, but without waiting. Null if a cache lacks something, or if it would throw. */
  knownDatasource(caller: Caller, teamId: TeamId, id: DatasourceId): Reached | null
}

export interface Placed {
  readonly membership?: Membership
  readonly reached?: Reached
}

/** The characters of our ids and tokens. */
const ID = /^[\w-]{1,200}$/
/** Names of database objects may contain any character except NUL and lone surrogates. */
const NAMES: ReadonlySet<string> = new Set(['schema', 'table'])
const NAME = /^[^\0]{1,1024}$/u

/** Throws the errors of Places, and NOT_FOUND for a parameter that cannot be an id. */
export async function place(
  places: Places,
  call: Call,
  route: Route,
  params: Readonly<Record<string, string>>,
): Promise<Placed> {
  try {
    if (!Object.entries(params).every(([name, value]) => isPossible(name, value))) throw notFound()
    return await find(places, call, route, params)
  } catch (error) {
    if (route.stranger !== undefined && error instanceof AppError && error.code === 'NOT_FOUND') {
      throw new AppError(route.stranger, 'You are not a member of this team, or this key cannot reach it.')
    }
    throw error
  }
}

/** Like place() without a role, but without waiting. Null if a cache lacks something. Then call place(). */
export function knownPlace(
  places: Places,
  caller: Caller,
  route: Route,
  { teamId = '', id = '' }: Readonly<Record<string, string>>,
): Required<Placed> | null {
  if (route.place !== 'datasource' || route.role !== undefined || !ID.test(teamId) || !ID.test(id)) return null
  const reached = places.knownDatasource(caller, asId<TeamId>(teamId), asId<DatasourceId>(id))
  return reached === null ? null : { membership: reached.membership, reached }
}

function isPossible(name: string, value: string): boolean {
  return NAMES.has(name) ? NAME.test(value) && value.isWellFormed() : ID.test(value)
}

async function find(
  places: Places,
  call: Call,
  route: Route,
  params: Readonly<Record<string, string>>,
): Promise<Placed> {
  const need = route.role === undefined ? {} : { role: route.role }
  const teamId = asId<TeamId>(params['teamId'] ?? '')
  if (route.place === 'team') {
    const { invited = false, withoutSecondFactor = false } = route
    return { membership: await places.team(call, teamId, { ...need, invited, withoutSecondFactor }) }
  }
  if (route.place === 'datasource') {
    const reached = await places.datasource(call, teamId, asId<DatasourceId>(params['id'] ?? ''), need)
    return { membership: reached.membership, reached }
  }
  return {}
}
