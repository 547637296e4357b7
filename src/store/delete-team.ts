// Deletes teams, datasources and webhooks. They may have gigabytes of rows, such as old versions of exposures. So the
// transaction of the caller only hides a team: it takes the members away. Afterwards, the rows are deleted in portions.
// A datasource or webhook moves to a hidden team of its own. If the process stops, the next start deletes the rest.
import { setImmediate } from 'node:timers/promises'
import { sql, type SqlBool, type Transaction } from 'kysely'
import { newId, type DatasourceId, type TeamId, type WebhookId } from '../ids.ts'
import { deleteInPortions, ROWS_A_PORTION } from './delete-in-portions.ts'
import type { Store } from './open.ts'
import type { Tables } from './tables.ts'

/** Nobody can choose such a slug, because it has a space. */
const HIDDEN = 'deleted '
/** How many rows of a datasource are deleted at once. In some tables, a row may have a megabyte or more. */
const OF_DATASOURCE = [
  ['exposures', 8],
  ['catalogs', 1],
  ['publications', 1],
  ['jobs', 8],
  ['profiles', 50],
  ['documentation', 50],
  ['publication_history', ROWS_A_PORTION],
  ['exposure_requests', 50],
  ['access_entries', ROWS_A_PORTION],
] as const

/** After this transaction, nobody finds the team or its datasources, and the slug is free. Then call removeHidden(). */
export async function hideTeam(tx: Transaction<Tables>, teamId: TeamId): Promise<void> {
  await tx
    .updateTable('teams')
    .set({ slug: HIDDEN + teamId })
    .where('id', '=', teamId)
    .execute()
  const datasources = tx.selectFrom('datasources').select('id').where('team_id', '=', teamId)
  await tx.deleteFrom('datasource_secrets').where('datasource_id', 'in', datasources).execute()
  await tx.updateTable('datasources').set({ status: 'DISABLED' }).where('team_id', '=', teamId).execute()
  await tx.updateTable('webhooks').set({ enabled: 0 }).where('team_id', '=', teamId).execute()
  await tx.deleteFrom('invitations').where('team_id', '=', teamId).execute()
  await tx.deleteFrom('memberships').where('team_id', '=', teamId).execute()
}

/** After this transaction, nobody finds the datasource. Then call removeHidden() for the team that this returns. */
export async function hideDatasource(tx: Transaction<Tables>, id: DatasourceId): Promise<TeamId> {
  const teamId = await addHidden(tx)
  await tx.updateTable('datasources').set({ team_id: teamId }).where('id', '=', id).execute()
  await hideTeam(tx, teamId)
  return teamId
}

/** After this transaction, nobody finds the webhook, and it sends nothing. Then do as for hideDatasource(). */
export async function hideWebhook(tx: Transaction<Tables>, id: WebhookId): Promise<TeamId> {
  const teamId = await addHidden(tx)
  await tx.updateTable('webhooks').set({ team_id: teamId }).where('id', '=', id).execute()
  await hideTeam(tx, teamId)
  return teamId
}

async function addHidden(tx: Transaction<Tables>): Promise<TeamId> {
  const id = newId<TeamId>()
  const team = { id, name: '', slug: HIDDEN + id, settings: '{}', created_at: new Date().toISOString() }
  await tx.insertInto('teams').values(team).execute()
  return id
}

export function isHidden({ slug }: { readonly slug: string }): boolean {
  return slug.startsWith(HIDDEN)
}

export function removeHidden(store: Store, teamId: TeamId): void {
  store.later(() => remove(store, teamId))
}

/** Call this at the start. Deletes the hidden teams that a process left. */
export function removeAllHidden(store: Store): void {
  store.later(async () => {
    const teams = await store.db.selectFrom('teams').select('id').where('slug', 'like', `${HIDDEN}%`).execute()
    for (const { id } of teams) await remove(store, id)
  })
}

async function remove(store: Store, teamId: TeamId): Promise<void> {
  const datasources = await store.db.selectFrom('datasources').select('id').where('team_id', '=', teamId).execute()
  for (const { id } of datasources) {
    const mine = sql<SqlBool>`datasource_id = ${id}`
    for (const [table, rows] of OF_DATASOURCE) await deleteInPortions(store, table, () => mine, rows)
    await store.commit((tx) => tx.deleteFrom('datasources').where('id', '=', id).execute())
    // SQLite answers synchronously, so let other requests run.
    await setImmediate()
  }
  const webhooks = await store.db.selectFrom('webhooks').select('id').where('team_id', '=', teamId).execute()
  for (const { id } of webhooks) {
    await deleteInPortions(store, 'webhook_deliveries', (eb) => eb('webhook_id', '=', id), 50)
    await deleteInPortions(store, 'webhook_conditions', (eb) => eb('webhook_id', '=', id))
    await setImmediate()
  }
  await store.append((tx) => tx.deleteFrom('teams').where('id', '=', teamId).execute())
}
