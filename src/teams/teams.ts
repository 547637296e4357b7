import type { Transaction } from 'kysely'
import type { Audit } from '../audit/audit.ts'
import { changesOf, flattened, type Target } from '../audit/recorded-changes.ts'
import { mayEnter, type Call } from '../auth/caller.ts'
import { requireConfirmed } from '../auth/require-recent-sign-in.ts'
import type { Config } from '../config.ts'
import { AppError, notFound } from '../errors.ts'
import { inSlices } from '../event-loop-slices.ts'
import { newId, type AccountId, type DatasourceId, type TeamId } from '../ids.ts'
import { isTrue } from '../store/better-auth-booleans.ts'
import { hideTeam, removeHidden } from '../store/delete-team.ts'
import type { Store } from '../store/open.ts'
import type { Role } from '../contract/schemas.ts'
import type { Tables, TeamTable } from '../store/tables.ts'
import type { Membership } from './require-membership.ts'
import { countsOf, type Counts } from './team-counts.ts'
import { holding, merged, requiresSecondFactor, settingsOf, type TeamSettings } from './team-settings.ts'
import { freeSlug } from './slug.ts'

export interface Team {
  readonly id: string
  readonly name: string
  readonly slug: string
  readonly role: Role
  readonly status: Membership['status']
  readonly memberCount: number
  readonly dataSourceCount: number
  readonly createdAt: string
}

/** `settings` is missing while the caller is INVITED. */
export type TeamDetail = Team & { readonly settings?: TeamSettings }

export interface TeamDeps {
  readonly store: Store
  readonly config: Pick<Config, 'ceilings'>
  readonly audit: Pick<Audit, 'change' | 'teamEnded'>
  /** Closes the connections and ends the jobs of deleted datasources. */
  readonly ended: (ids: readonly DatasourceId[]) => Promise<void>
  readonly now?: () => number
}

/** Oldest first, including teams that are not opened yet. An API key gets only the teams that it may use. */
export async function listTeams(deps: Pick<TeamDeps, 'store'>, call: Call): Promise<readonly Team[]> {
  const { accountId } = call.caller
  const rows = await deps.store.recall(`teams of ${accountId}`, () =>
    deps.store.db
      .selectFrom('memberships')
      .innerJoin('teams', 'teams.id', 'memberships.team_id')
      .select(['teams.id', 'teams.name', 'teams.slug', 'teams.created_at', 'memberships.role', 'memberships.status'])
      .where('memberships.account_id', '=', accountId)
      .orderBy('teams.created_at')
      .orderBy('teams.id')
      .execute(),
  )
  const open = rows.filter((row) => mayEnter(call.caller, row.id))
  const teams: Team[] = []
  const pause = inSlices()
  for (const row of open) {
    // SQLite answers synchronously, so let other requests run.
    await pause()
    const membership = { teamId: row.id, accountId, role: row.role, status: row.status }
    teams.push(shown(row, membership, await countsOf(deps.store, call.caller, membership)))
  }
  return teams
}

/** Limited because anybody who is signed in may create teams. */
const TEAMS_MAX = 100

/** The caller becomes the OWNER. Throws CONFLICT if the slug is taken, or if the caller owns too many teams. */
export async function createTeam(
  deps: TeamDeps,
  call: Call,
  order: { readonly name: string; readonly slug?: string },
): Promise<TeamDetail> {
  const { accountId } = call.caller
  const created_at = new Date(now(deps)).toISOString()
  const row = await deps.store.write(async (tx) => {
    await requireRoom(tx, accountId)
    const slug = order.slug ?? (await freeSlug(tx, order.name))
    if (order.slug !== undefined) await requireFree(tx, order.slug)
    const team = { id: newId<TeamId>(), name: order.name.trim(), slug, settings: '{}', created_at }
    await tx.insertInto('teams').values(team).execute()
    await tx
      .insertInto('memberships')
      .values({ team_id: team.id, account_id: accountId, role: 'OWNER', status: 'ACTIVE', created_at })
      .execute()
    const changes = changesOf(null, { name: team.name, slug: team.slug })
    await deps.audit.change(tx, call, { teamId: team.id }, { target: targetOf(team), changes })
    return team
  })
  const membership: Membership = { teamId: row.id, accountId, role: 'OWNER', status: 'ACTIVE' }
  return {
    ...shown(row, membership, { memberCount: 1, dataSourceCount: 0 }),
    settings: holding(row.settings, deps.config.ceilings),
  }
}

export async function describeTeam(
  deps: Pick<TeamDeps, 'store' | 'config'>,
  call: Call,
  membership: Membership,
): Promise<TeamDetail> {
  const team = await showTeam(deps.store, call, membership)
  return membership.status === 'INVITED' ? team : { ...team, settings: await settingsOf(deps, membership.teamId) }
}

/**
 * Applies all changes or none. Throws CONFLICT if the slug is taken, or if the change requires a second factor that the
 * caller does not have. Throws INVALID_REQUEST if a value is above its ceiling.
 */
export async function changeTeam(
  deps: TeamDeps,
  call: Call,
  membership: Membership,
  change: { readonly name?: string; readonly slug?: string; readonly settings?: Partial<TeamSettings> },
): Promise<TeamDetail> {
  const { teamId } = membership
  await deps.store.write(async (tx) => {
    const row = await tx.selectFrom('teams').selectAll().where('id', '=', teamId).executeTakeFirst()
    if (row === undefined) throw notFound()
    if (change.slug !== undefined && change.slug !== row.slug) await requireFree(tx, change.slug)
    const begins = change.settings?.requireSecondFactor === true && !requiresSecondFactor(row.settings)
    if (begins) await requireOwnFactor(tx, membership.accountId)
    const set = {
      name: change.name?.trim() ?? row.name,
      slug: change.slug ?? row.slug,
      settings: change.settings ? merged(row.settings, change.settings, deps.config.ceilings) : row.settings,
    }
    await tx.updateTable('teams').set(set).where('id', '=', teamId).execute()
    const fields = ({ name, slug, settings }: typeof set) => {
      return { name, slug, ...flattened('settings', holding(settings, deps.config.ceilings)) }
    }
    const what = { target: targetOf({ ...row, ...set }), changes: changesOf(fields(row), fields(set)) }
    await deps.audit.change(tx, call, { teamId }, what)
  })
  return await describeTeam(deps, call, membership)
}

/**
 * Deletes a team with its datasources and their secrets. Its audit rows stay until their retention ends. Throws
 * REAUTHENTICATION_REQUIRED unless `confirm` is the slug and the sign-in is recent.
 */
export async function deleteTeam(
  deps: TeamDeps,
  call: Call,
  membership: Membership,
  body: { readonly confirm?: string },
): Promise<void> {
  const { teamId } = membership
  const gone = await deps.store.write(async (tx) => {
    const team = await tx.selectFrom('teams').selectAll().where('id', '=', teamId).executeTakeFirst()
    if (team === undefined) throw notFound()
    requireConfirmed(call.caller, body.confirm === team.slug, 'its slug', now(deps))
    const datasources = await tx
      .selectFrom('datasources')
      .select(['id', 'name'])
      .where('team_id', '=', teamId)
      .execute()
    const names = datasources.map((row) => row.name)
    const changes = changesOf({ name: team.name, slug: team.slug, datasources: names }, null)
    await deps.audit.change(tx, call, { teamId }, { target: targetOf(team), changes })
    await deps.audit.teamEnded(tx, teamId, holding(team.settings, deps.config.ceilings).auditRetentionDays)
    await hideTeam(tx, teamId)
    return datasources.map((row) => row.id)
  })
  await deps.ended(gone)
  removeHidden(deps.store, teamId)
}

export async function showTeam(store: Store, call: Call, membership: Membership): Promise<Team> {
  const row = await store.recall(`team ${membership.teamId}`, () =>
    store.db.selectFrom('teams').selectAll().where('id', '=', membership.teamId).executeTakeFirst(),
  )
  if (row === undefined) throw notFound()
  return shown(row, membership, await countsOf(store, call.caller, membership))
}

function targetOf({ id, name }: Pick<TeamTable, 'id' | 'name'>): Target {
  return { kind: 'team', id, name }
}

function shown(
  row: Pick<TeamTable, 'id' | 'name' | 'slug' | 'created_at'>,
  membership: Membership,
  counts: Counts,
): Team {
  return {
    id: row.id,
    name: row.name,
    slug: row.slug,
    role: membership.role,
    status: membership.status,
    ...counts,
    createdAt: row.created_at,
  }
}

async function requireRoom(tx: Transaction<Tables>, accountId: AccountId): Promise<void> {
  const { count } = await tx
    .selectFrom('memberships')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('account_id', '=', accountId)
    .where('role', '=', 'OWNER')
    // INVITED memberships do not count, because other people may have invited the account as OWNER of their teams.
    .where('status', '=', 'ACTIVE')
    .executeTakeFirstOrThrow()
  if (Number(count) >= TEAMS_MAX) {
    throw new AppError('CONFLICT', `An account can own at most ${TEAMS_MAX} teams. Delete or leave a team first.`)
  }
}

/** Throws CONFLICT if the caller has no second factor, because the change would lock the caller out. */
async function requireOwnFactor(tx: Transaction<Tables>, accountId: AccountId): Promise<void> {
  const account = await tx
    .selectFrom('accounts')
    .select('twoFactorEnabled')
    .where('id', '=', accountId)
    .executeTakeFirst()
  if (isTrue(account?.twoFactorEnabled)) return
  throw new AppError('CONFLICT', 'Set up your own second factor before you require one: POST /auth/two-factor/enable.')
}

async function requireFree(tx: Transaction<Tables>, slug: string): Promise<void> {
  const taken = await tx.selectFrom('teams').select('id').where('slug', '=', slug).executeTakeFirst()
  if (taken !== undefined) throw new AppError('CONFLICT', `The slug ${slug} is already taken.`)
}

function now(deps: TeamDeps): number {
  return (deps.now ?? Date.now)()
}
