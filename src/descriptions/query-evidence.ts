// Reads from the audit how often each table and column was refused recently, and when it was last read, for the person
// who chooses the exposure. The first call for a catalog version reads a limited part of the audit in the background.
// Later calls read only newer rows.
import { once } from 'node:events'
import type { Audit } from '../audit/audit.ts'
import { BoundedMap } from '../bounded-map.ts'
import { deadlineOf } from '../deadline.ts'
import type { Catalog } from '../drivers/driver.ts'
import type { DatasourceId, TeamId } from '../ids.ts'
import { CollectedEvidence, type Evidence } from './collected-evidence.ts'

export interface QueryEvidence extends AsyncDisposable {
  /** Returns what is known so far. Waits only a moment for the scan of the audit, which continues in the background. */
  of(at: EvidencePlace, catalog: Catalog): Promise<Evidence>
}

interface EvidencePlace {
  readonly id: DatasourceId
  readonly teamId: TeamId
  readonly row: { readonly catalog_version: number }
}

interface Deps {
  readonly audit: Pick<Audit, 'all'>
  readonly log: { warn(detail: object, message: string): void }
  readonly now?: () => number
}

const SCAN_MS = 10_000
/** How long a call waits for a scan. */
const WAIT_MS = 60
/** The minimum pause between two scans. After a long scan, the pause is PAUSES times as long as the scan. */
const PAUSE_MS = 1_000
const PAUSES = 5
const DATASOURCES_MAX = 50

export function openQueryEvidence(deps: Deps): QueryEvidence {
  return new AuditedEvidence(deps)
}

class AuditedEvidence implements QueryEvidence {
  readonly #audit: Deps['audit']
  readonly #log: Deps['log']
  readonly #now: () => number
  readonly #known = new BoundedMap<DatasourceId, CollectedEvidence>(DATASOURCES_MAX)
  readonly #scans = new Map<DatasourceId, Promise<void>>()
  readonly #end = new AbortController()
  #tail: Promise<void> = Promise.resolve()

  constructor({ audit, log, now = Date.now }: Deps) {
    this.#audit = audit
    this.#log = log
    this.#now = now
  }

  async of(at: EvidencePlace, catalog: Catalog): Promise<Evidence> {
    const known = this.#known.get(at.id)
    const isCurrent = known?.catalogVersion === at.row.catalog_version
    const collected = isCurrent ? known : new CollectedEvidence(catalog, at.row.catalog_version)
    if (!isCurrent) this.#known.set(at.id, collected)
    if (this.#now() >= collected.dueAt) {
      using wait = deadlineOf(this.#end.signal, WAIT_MS)
      await Promise.race([this.#scan(at, collected), once(wait.signal, 'abort')])
    }
    return collected.evidence(this.#now(), !this.#scans.has(at.id))
  }

  #scan(at: EvidencePlace, collected: CollectedEvidence): Promise<void> {
    const running = this.#scans.get(at.id)
    if (running !== undefined) return running
    const scan = this.#tail.then(() => this.#collect(at, collected)).finally(() => this.#scans.delete(at.id))
    this.#scans.set(at.id, scan)
    this.#tail = scan
    return scan
  }

  /** Never rejects. If the audit cannot be read, the evidence is missing, and the next call tries again. */
  async #collect(at: EvidencePlace, collected: CollectedEvidence): Promise<void> {
    using deadline = deadlineOf(this.#end.signal, SCAN_MS)
    const now = this.#now()
    for (const scan of [collected.refusals(now), collected.reads(now)]) {
      const filter = { datasourceId: at.id, action: 'runQuery', ...scan.filter }
      try {
        await scan.take(this.#audit.all(at.teamId, { filter }, deadline.signal))
      } catch (err) {
        if (!deadline.signal.aborted) this.#log.warn({ err }, 'the audit could not be read for a catalog')
      }
    }
    const took = this.#now() - now
    collected.dueAt = now + took + Math.max(PAUSE_MS, took * PAUSES)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort()
    await this.#tail
  }
}
