// A week before an API key expires, logs a warning and sends a mail to the owner's verified address, only once.
import type { ApiKeyId } from '../ids.ts'
import { keyExpiringLetter } from '../mail/mail-texts.ts'
import type { Mail } from '../mail/send-mail.ts'
import { isTrue } from '../store/better-auth-booleans.ts'
import type { Store } from '../store/open.ts'

/** A key counts as expiring for this long (docs/session.md#api-keys). */
export const EXPIRING_MS = 7 * 86_400_000
const FIRST_MS = 5_000
const EVERY_MS = 3_600_000
const KEYS_AT_ONCE = 100

export interface KeyWarnings extends AsyncDisposable {
  /** Call this for a new or changed key that expires within a week. */
  soon(): void
  tell(): Promise<void>
}

interface Deps {
  readonly store: Store
  readonly mail: Mail
  readonly origin: () => string
  readonly log: { warn(detail: object, message: string): void; error(detail: object, message: string): void }
  readonly now?: () => number
}

export function openKeyWarnings(deps: Deps): KeyWarnings {
  let running: Promise<void> = Promise.resolve()
  let timer: NodeJS.Timeout | undefined
  let ended = false
  const arm = (ms: number) => {
    clearTimeout(timer)
    if (ended) return
    timer = setTimeout(() => {
      arm(EVERY_MS)
      void tell().catch((err: unknown) => deps.log.error({ err }, 'checking for expiring API keys failed'))
    }, ms)
    timer.unref()
  }
  const tell = () => {
    const warned = running.then(() => warnAll(deps))
    running = warned.catch(() => undefined)
    return warned
  }
  arm(FIRST_MS)
  return {
    soon: () => arm(0),
    tell,
    async [Symbol.asyncDispose]() {
      ended = true
      clearTimeout(timer)
      await running
    },
  }
}

async function warnAll(deps: Deps): Promise<void> {
  const at = (deps.now ?? Date.now)()
  for (;;) {
    const keys = await expiring(deps.store, at)
    for (const key of keys) await warnOne(deps, key, at)
    if (keys.length < KEYS_AT_ONCE) return
  }
}

type Expiring = Awaited<ReturnType<typeof expiring>>[number]

function expiring(store: Store, at: number) {
  return store.db
    .selectFrom('api_keys')
    .innerJoin('accounts', 'accounts.id', 'api_keys.account_id')
    .select(['api_keys.id', 'api_keys.account_id', 'api_keys.name', 'api_keys.hint', 'api_keys.expires_at'])
    .select(['accounts.email', 'accounts.emailVerified'])
    .where('api_keys.warned_at', 'is', null)
    .where('api_keys.revoked_at', 'is', null)
    .where('api_keys.expires_at', '>', new Date(at).toISOString())
    .where('api_keys.expires_at', '<=', new Date(at + EXPIRING_MS).toISOString())
    .orderBy('api_keys.expires_at')
    .limit(KEYS_AT_ONCE)
    .execute()
}

async function warnOne({ store, mail, origin, log }: Deps, key: Expiring, at: number): Promise<void> {
  if (key.expires_at === null || !(await claim(store, key.id, at))) return
  const { expires_at: expiresAt, name, hint } = key
  log.warn({ keyId: key.id, accountId: key.account_id, expiresAt }, 'an API key expires within a week')
  // An unverified address may belong to a stranger.
  if (!mail.isOn || !isTrue(key.emailVerified)) return
  mail.send(keyExpiringLetter({ to: key.email, origin: origin(), name, hint, expiresAt }), `account ${key.account_id}`)
}

/** Returns true if this process must send the warning. */
async function claim(store: Store, id: ApiKeyId, at: number): Promise<boolean> {
  const warned_at = new Date(at).toISOString()
  const claimed = await store.append((tx) =>
    tx
      .updateTable('api_keys')
      .set({ warned_at })
      .where('id', '=', id)
      .where('warned_at', 'is', null)
      .executeTakeFirst(),
  )
  return claimed.numUpdatedRows === 1n
}
