// Reads the rows of the caller's own calls. Leaves out datasources that the caller can no longer reach.
import type { Audit } from '../audit.ts'
import type { Stored } from '../chain/seal.ts'
import { merged } from './merge-streams.ts'
import { searched } from './newest-rows.ts'
import { pageOf, type AuditPage } from './page.ts'
import { isNewer, type AuditScope, type Key } from './row-filter.ts'
import { filterOf, type AuditFilterInput, type AuditTrailDeps, type Reader } from './within-reach.ts'
import { inSlices } from '../../event-loop-slices.ts'
import type { Call } from '../../auth/caller.ts'
import type { DatasourceId, TeamId } from '../../ids.ts'
import type { Store } from '../../store/open.ts'

const LIMIT = 50

export interface ActivityDeps extends Pick<AuditTrailDeps, 'reachableIds'> {
  readonly store: Pick<Store, 'db'>
  readonly audit: Pick<Audit, 'flush'>
  membershipsOf(call: Call): Promise<readonly Reader[]>
}

type Rows = AsyncIterable<readonly (Stored | Key)[]>

export async function listActivity(
  deps: ActivityDeps,
  call: Call,
  input: Omit<AuditFilterInput, 'accountId'> & { readonly cursor?: string; readonly limit?: number },
): Promise<AuditPage> {
  const { accountId } = call.caller
  await deps.audit.flush()
  const filter = filterOf({ ...input, accountId })
  const places = await placesOf(deps, call)
  const rows = (before: Key | null): Rows =>
    places
      .map(({ teamId, ids }): Rows => {
        const scope: AuditScope = ids === null ? { filter } : { filter, datasourceIds: ids }
        return searched(deps.store, teamId, scope, before, call.signal)
      })
      .reduce((one, other) => merged(one, other, isNewer))
  return await pageOf(rows, { cursor: input.cursor, limit: input.limit ?? LIMIT })
}

interface Place {
  /** Null for the rows without a team. */
  readonly teamId: TeamId | null
  /** If not null, only rows of these datasources and rows without a datasource. */
  readonly ids: readonly DatasourceId[] | null
}

async function placesOf(deps: ActivityDeps, call: Call): Promise<readonly [Place, ...Place[]]> {
  const teams: Place[] = []
  const pause = inSlices()
  for (const reader of await deps.membershipsOf(call)) {
    // SQLite answers synchronously, so let other requests run.
    await pause()
    const ids = reader.role === 'OWNER' ? null : await deps.reachableIds(call, reader)
    teams.push({ teamId: reader.teamId, ids })
  }
  return [{ teamId: null, ids: null }, ...teams]
}
