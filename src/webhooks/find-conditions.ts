// Finds the conditions of a webhook that are true now, in data that the webhook's account may see. SQLite calls block
// the event loop, so long searches let other requests run in between.
import { EXPIRING_MS } from '../auth/key-expiry-warnings.ts'
import type { Catalogs } from '../exposure/catalog-cache.ts'
import type { DatasourceId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import { reachedIdsOf } from '../teams/team-counts.ts'
import { listTeamKeys } from '../teams/team-keys.ts'
import { usableMembership, type Membership } from '../teams/require-membership.ts'
import { roleAtLeast } from '../teams/roles.ts'
import { driftCondition, errorCondition, keyCondition, refusalsCondition, type Condition } from './event-messages.ts'
import { eventsOf, type WebhookRow } from './webhooks.ts'

export interface ConditionDeps {
  readonly store: Store
  readonly catalogs: Pick<Catalogs, 'counts'>
  readonly now: () => number
}

/** Awaited between two steps, to let other requests run from time to time. */
type Turn = () => Promise<void> | undefined

/** What all webhooks of one account in one team share. */
interface Seen {
  readonly membership: Membership
  readonly ids: readonly DatasourceId[]
  /** Undefined until a webhook needs them. */
  datasources?: readonly Condition[]
  keys?: readonly Condition[]
}

/** Finds the conditions of many webhooks. Reads the datasources and keys of an account in a team only once. */
export class ConditionFinder {
  readonly #deps: ConditionDeps
  readonly #turn: Turn
  readonly #seen = new Map<string, Seen | null>()

  constructor(deps: ConditionDeps, turn: Turn) {
    this.#deps = deps
    this.#turn = turn
  }

  /** Returns null if the account may not manage the team now. */
  async conditionsFor(webhook: WebhookRow): Promise<readonly Condition[] | null> {
    const seen = await this.#see(webhook)
    if (seen === null) return null
    const events = new Set(eventsOf(webhook))
    const found: Condition[] = []
    if (events.has('refusals')) found.push(...(await refusals(this.#deps, webhook, seen.ids, this.#turn)))
    if (events.has('drift') || events.has('datasourceError')) {
      seen.datasources ??= await datasources(this.#deps, seen.ids, this.#turn)
      found.push(...seen.datasources.filter(({ event }) => events.has(event)))
    }
    if (events.has('keyExpiring')) {
      seen.keys ??= await expiringKeys(this.#deps, seen.membership)
      found.push(...seen.keys)
    }
    return found
  }

  async #see(webhook: WebhookRow): Promise<Seen | null> {
    const id = `${webhook.team_id} ${webhook.account_id}`
    const known = this.#seen.get(id)
    if (known !== undefined) return known
    const { store } = this.#deps
    const membership = await managerOf(store, webhook)
    const seen = membership && { membership, ids: [...(await reachedIdsOf(store.db, membership))] }
    this.#seen.set(id, seen)
    return seen
  }
}

async function managerOf(store: Store, webhook: WebhookRow): Promise<Membership | null> {
  const membership = await usableMembership(store, webhook.team_id, webhook.account_id)
  return membership !== null && roleAtLeast(membership.role, 'ADMIN') ? membership : null
}

/** One statement counts the refusals of this period. A day can have hundreds of thousands. */
const SLICE_MS = 3_600_000

/** Refused rows are never packed, so this reads only single audit rows. */
async function refusals(
  { store, now }: ConditionDeps,
  webhook: WebhookRow,
  ids: readonly DatasourceId[],
  turn: Turn,
): Promise<readonly Condition[]> {
  if (ids.length === 0) return []
  const { refusals_count: count, refusals_minutes: minutes } = webhook
  const end = now()
  let refused = 0
  for (let from = end - minutes * 60_000; from < end; from += SLICE_MS) {
    await turn()
    const row = await store.db
      .selectFrom('audit')
      .select((eb) => eb.fn.sum<number | null>('times').as('refused'))
      .where('team_id', '=', webhook.team_id)
      .where('at', '>=', new Date(from).toISOString())
      .$if(from + SLICE_MS < end, (query) => query.where('at', '<', new Date(from + SLICE_MS).toISOString()))
      .where('outcome', '=', 'DENIED')
      .where('action', '=', 'runQuery')
      .where('datasource_id', 'in', ids)
      .executeTakeFirst()
    refused += Number(row?.refused ?? 0)
  }
  return refused >= count ? [refusalsCondition(refused, { count, minutes })] : []
}

async function datasources(
  { store, catalogs }: ConditionDeps,
  ids: readonly DatasourceId[],
  turn: Turn,
): Promise<readonly Condition[]> {
  if (ids.length === 0) return []
  const rows = await store.db
    .selectFrom('datasources')
    .selectAll()
    .where('id', 'in', ids)
    .where('status', '!=', 'DISABLED')
    .orderBy('id')
    .execute()
  const found: Condition[] = []
  const counts = await catalogs.counts(rows)
  for (const [n, row] of rows.entries()) {
    await turn()
    const named = { id: row.id, name: row.name }
    if (row.status === 'ERROR') found.push(errorCondition(named, row.last_error))
    const driftCount = counts[n]?.driftCount ?? 0
    if (driftCount > 0) found.push(driftCondition(named, driftCount))
  }
  return found
}

async function expiringKeys({ store, now }: ConditionDeps, membership: Membership): Promise<readonly Condition[]> {
  const until = now() + EXPIRING_MS
  const keys = await listTeamKeys({ store, now }, membership)
  const expiring = keys.flatMap(({ id, name, email, expiresAt }) =>
    expiresAt === null || Date.parse(expiresAt) > until ? [] : [{ id, name, email, expiresAt }],
  )
  // A webhook watches a limited number of conditions, so the keys that expire first come first.
  return expiring.sort((a, b) => (a.expiresAt < b.expiresAt ? -1 : 1)).map(keyCondition)
}
