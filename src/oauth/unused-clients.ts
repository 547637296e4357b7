// Anybody may register a client, so clients without a grant are limited and deleted. A client whose grant has ended is
// kept, because the person may connect it again.
import { setImmediate } from 'node:timers/promises'
import { AppError } from '../errors.ts'
import { isoTime, storedTime } from '../store/better-auth-times.ts'
import type { Store } from '../store/open.ts'

const UNUSED_MS = 86_400_000
/** The maximum number of clients without a grant. If there are more, the oldest are deleted earlier. */
const UNUSED_MAX = 10_000
/** A client is kept at least this long, because a person may be reading the consent page. */
const FRESH_MS = 3_600_000
/** Clients are deleted at most this often, after a registration. */
const PRUNE_MS = 60_000
/** How many clients are read and deleted before other requests run. */
export const CLIENTS_AT_A_TIME = 250
const RETRY_AFTER_SECONDS = 60

export interface UnusedClients {
  /** Throws OVERLOADED if too many clients are younger than an hour. */
  requireRoom(now: number): Promise<void>
  /** Deletes clients in the background. Call this after a registration. */
  prune(now: number): void
}

export function openUnusedClients(store: Pick<Store, 'db' | 'dialect' | 'append' | 'later'>): UnusedClients {
  let prunedAt = -Infinity
  return {
    async requireRoom(now) {
      const fresh = store.db
        .selectFrom('oauth_clients')
        .select('createdAt')
        .where('createdAt', '>=', storedTime(store.dialect, now - FRESH_MS))
        .limit(UNUSED_MAX)
      const { clients } = await store.db
        .selectFrom(fresh.as('fresh'))
        .select(({ fn }) => fn.countAll().as('clients'))
        .executeTakeFirstOrThrow()
      if (Number(clients) < UNUSED_MAX) return
      const retryAfter = RETRY_AFTER_SECONDS
      throw new AppError('OVERLOADED', `Too many agents were registered. Wait ${retryAfter} s, and connect again.`, {
        extra: { retryAfter },
      })
    },
    prune(now) {
      if (now - prunedAt < PRUNE_MS) return
      prunedAt = now
      store.later(() => pruneUnused(store, now))
    },
  }
}

async function pruneUnused(store: Pick<Store, 'db' | 'dialect' | 'append'>, now: number): Promise<void> {
  let unused = 0
  for (let last: Client | undefined; ;) {
    const clients = await clientsBefore(store, last)
    const old: string[] = []
    for (const { id, createdAt, isUsed } of clients) {
      if (Boolean(isUsed)) continue
      const age = now - Date.parse(isoTime(createdAt))
      if (++unused > UNUSED_MAX ? age > FRESH_MS : age > UNUSED_MS) old.push(id)
    }
    if (old.length > 0) {
      await store.append((tx) =>
        tx
          .deleteFrom('oauth_clients')
          .where('id', 'in', old)
          // A person may have granted access in the meantime.
          .where(({ not, exists, selectFrom }) =>
            not(exists(selectFrom('connector_grants').select('id').whereRef('client_id', '=', 'clientId'))),
          )
          .execute(),
      )
    }
    last = clients.at(-1)
    if (clients.length < CLIENTS_AT_A_TIME) return
    // SQLite answers synchronously, so let other requests run.
    await setImmediate()
  }
}

type Client = Awaited<ReturnType<typeof clientsBefore>>[number]

async function clientsBefore(
  { db }: Pick<Store, 'db'>,
  last: { readonly id: string; readonly createdAt: string | Date } | undefined,
) {
  let clients = db
    .selectFrom('oauth_clients')
    .select(['id', 'createdAt'])
    .select(({ exists, selectFrom }) =>
      exists(selectFrom('connector_grants').select('id').whereRef('client_id', '=', 'clientId')).as('isUsed'),
    )
  if (last !== undefined) {
    clients = clients.where(({ eb, refTuple, tuple }) =>
      eb(refTuple('createdAt', 'id'), '<', tuple(last.createdAt, last.id)),
    )
  }
  return await clients.orderBy('createdAt', 'desc').orderBy('id', 'desc').limit(CLIENTS_AT_A_TIME).execute()
}
