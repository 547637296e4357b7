// The datasources of an account, in all of its teams, share the turns of background work. Otherwise an account could
// get more turns by making more teams.
import type { ExpressionBuilder } from 'kysely'
import type { DatasourceTable, Tables } from '../store/tables.ts'

export function ownerOf(eb: ExpressionBuilder<Tables & { datasources: DatasourceTable }, 'datasources'>) {
  return eb
    .selectFrom('memberships')
    .select((of) => of.fn.min('memberships.account_id').as('owner'))
    .whereRef('memberships.team_id', '=', 'datasources.team_id')
    .where('memberships.role', '=', 'OWNER')
    .where('memberships.status', '=', 'ACTIVE')
    .as('owner')
}
