// The service is ready unless it is draining, the audit cannot be written, or the store does not answer in time.
import type { Audit } from './audit/audit.ts'
import { AppError } from './errors.ts'
import type { Store } from './store/open.ts'

const DEADLINE_MS = 1_000
const RETRY_AFTER_SECONDS = 1

export interface ReadinessDeps {
  readonly store: Pick<Store, 'db'>
  readonly audit: Pick<Audit, 'behind' | 'writes'>
  readonly isDraining: () => boolean
}

/** Returns a function that throws the answer of /health/ready if the service is not ready. */
export function readiness({ store, audit, isDraining }: ReadinessDeps): () => Promise<void> {
  return async () => {
    if (isDraining()) throw notReady('OVERLOADED', 'The service is shutting down.')
    const { promise, reject } = Promise.withResolvers<never>()
    const late = () => reject(notReady('STORE_UNAVAILABLE', 'The store of the service does not answer.'))
    const timer = setTimeout(late, DEADLINE_MS)
    try {
      await Promise.race([store.db.selectFrom('teams').select('id').limit(1).execute(), promise])
    } finally {
      clearTimeout(timer)
    }
    if (audit.behind || !audit.writes) throw notReady('OVERLOADED', 'The audit cannot be written.')
  }
}

function notReady(code: 'OVERLOADED' | 'STORE_UNAVAILABLE', why: string): AppError {
  return new AppError(code, why, { extra: { retryAfter: RETRY_AFTER_SECONDS } })
}
