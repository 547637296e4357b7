// The datasources of an account share turns of background work, so that more teams do not bring more turns.
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
