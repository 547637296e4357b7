// Reads the restrictions of keys and grants, whose rows have the same columns for them.
import { z } from 'zod'
import { AppError } from '../errors.ts'
import { asId, type DatasourceId, type TeamId } from '../ids.ts'
import type { ApiKeyTable } from '../store/tables.ts'
import type { Restricted } from './caller.ts'

const Scopes = z.array(z.enum(['profile', 'data:schema', 'data:read']))
const Ids = z.array(z.string())

/** A list of all keys or grants of a team contains the ids of each, so their number is limited for each account. */
const LISTED_MAX = 5_000

type Row<K extends keyof ApiKeyTable> = Pick<ApiKeyTable, K>
type Columns = 'account_id' | 'scopes' | 'team_ids' | 'datasource_ids' | 'ended_team_ids' | 'expires_at'

export function restrictionsOf(row: Row<Columns>): Omit<Restricted, 'name'> {
  const teamIds = teamIdsOf(row)
  const datasourceIds = datasourceIdsOf(row)
  return {
    accountId: row.account_id,
    scopes: new Set(scopesOf(row)),
    teamIds: teamIds && new Set(teamIds),
    datasourceIds: datasourceIds && new Set(datasourceIds),
    endedTeamIds: new Set(endedTeamIdsOf(row)),
    expiresAt: row.expires_at,
  }
}

export function scopesOf(row: Row<'scopes'>) {
  return Scopes.parse(JSON.parse(row.scopes))
}

export function teamIdsOf(row: Row<'team_ids'>): readonly TeamId[] | null {
  return row.team_ids === null ? null : ids(row.team_ids).map((id) => asId<TeamId>(id))
}

export function datasourceIdsOf(row: Row<'datasource_ids'>): readonly DatasourceId[] | null {
  return row.datasource_ids === null ? null : ids(row.datasource_ids).map((id) => asId<DatasourceId>(id))
}

/** Throws CONFLICT if these keys or grants of an account list too many datasources together. */
export function requireFewListed(rows: readonly Row<'datasource_ids'>[], what: 'API keys' | 'agents'): void {
  const listed = rows.reduce((all, row) => all + (datasourceIdsOf(row)?.length ?? 0), 0)
  if (listed <= LISTED_MAX) return
  throw new AppError(
    'CONFLICT',
    `All ${what} of an account can list at most ${LISTED_MAX} datasources together. Allow all datasources of a team, or end access that you no longer need.`,
  )
}

export function endedTeamIdsOf(row: Row<'ended_team_ids'>): readonly TeamId[] {
  return ids(row.ended_team_ids).map((id) => asId<TeamId>(id))
}

function ids(json: string): readonly string[] {
  return Ids.parse(JSON.parse(json))
}
