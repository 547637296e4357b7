// Lists which hidden tables and columns the refused queries of a team wanted to read, one group per table or column.
// Compares only names. exposureFromRefusal finds the exact change of the exposure.
import { setImmediate } from 'node:timers/promises'
import type { Audit } from '../audit/audit.ts'
import { Blocked } from '../audit/refusal-reason.ts'
import { newest } from '../audit/reading/newest-rows.ts'
import { readDetail } from '../audit/row-detail.ts'
import type { Call } from '../auth/caller.ts'
import type { Catalog, Denied } from '../drivers/driver.ts'
import type { Catalogs } from '../exposure/catalog-cache.ts'
import { tableKey } from '../exposure/cut-catalog.ts'
import { versionsNow } from '../exposure/exposure.ts'
import type { AuditId, DatasourceId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import type { Membership } from '../teams/require-membership.ts'
import { columnsMeant, mentioned, tablesMeant } from './column-mentions.ts'

export interface RefusalDeps {
  readonly store: Store
  readonly audit: Pick<Audit, 'flush'>
  readonly catalogs: Catalogs
  reachableIds(call: Call, reader: Membership): Promise<readonly DatasourceId[]>
  readonly now?: () => number
}

/** What a refused query most likely meant. A field is missing if there is not exactly one candidate. */
interface Meant {
  readonly schema?: string
  readonly table?: string
  readonly column?: string
  /** True if a wider exposure may allow the query. */
  readonly fixable: boolean
}

export interface RefusalGroup extends Meant {
  readonly datasourceId: string
  readonly blocked: Denied['blocked']
  readonly count: number
  /** The numbers of distinct API keys and grants, and of distinct accounts. */
  readonly keys: number
  readonly accounts: number
  readonly lastAt: string
  readonly exampleAuditId: string
}

const DAYS = 7
const DAY_MS = 86_400_000
/**
 * Older refusals and smaller groups are left out. After TEXTS_MAX different queries, the remaining ones are not
 * `fixable`.
 */
const ROWS_MAX = 100_000
const TEXTS_MAX = 1_000
const GROUPS_MAX = 200

/** Returns the groups, largest first. Throws the abort reason of `call.signal`. */
export async function listRefusals(
  deps: RefusalDeps,
  call: Call,
  membership: Membership,
  input: { readonly days?: number },
): Promise<readonly RefusalGroup[]> {
  await deps.audit.flush()
  const datasourceIds = await deps.reachableIds(call, membership)
  const from = new Date((deps.now ?? Date.now)() - (input.days ?? DAYS) * DAY_MS).toISOString()
  const scope = { datasourceIds, filter: { actions: ['runQuery'], outcomes: ['DENIED'], from } } as const
  const meanings = meaningsOf(deps)
  const groups = new Map<string, Group>()
  let count = 0
  for await (const rows of newest(deps.store, membership.teamId, scope, null, call.signal)) {
    for (const row of rows) {
      if (row.datasource_id === null || row.blocked === null) continue
      const blocked = Blocked.parse(JSON.parse(row.blocked))
      const meant = await meanings(row.datasource_id, blocked, row.redacted === 0 ? row.query : null)
      const key = JSON.stringify([row.datasource_id, blocked.kind, blocked.name, meant])
      const known = groups.get(key)
      const group = known ?? newGroup(row.datasource_id, blocked, meant, row)
      if (known === undefined) groups.set(key, group)
      group.count += row.times
      const keyed = row.key_id ?? readDetail(row.detail).grant
      if (keyed !== undefined) group.keys.add(keyed)
      if (row.account_id !== null) group.accounts.add(row.account_id)
    }
    count += rows.length
    if (count >= ROWS_MAX) break
  }
  return [...groups.values()]
    .sort((a, b) => b.count - a.count || (a.lastAt < b.lastAt ? 1 : -1))
    .slice(0, GROUPS_MAX)
    .map((group) => ({ ...group, keys: group.keys.size, accounts: group.accounts.size }))
}

type Group = Omit<RefusalGroup, 'count' | 'keys' | 'accounts'> & {
  count: number
  readonly keys: Set<string>
  readonly accounts: Set<string>
}

function newGroup(
  datasourceId: DatasourceId,
  blocked: Denied['blocked'],
  meant: Meant,
  row: { readonly at: string; readonly id: AuditId },
): Group {
  const example = { lastAt: row.at, exampleAuditId: row.id }
  return { datasourceId, blocked, ...meant, ...example, count: 0, keys: new Set(), accounts: new Set() }
}

const NOT_FIXABLE: Meant = { fixable: false }

/** Finds what a refused query meant. Searches only once for equal queries with equal refusals. */
function meaningsOf({ store, catalogs }: RefusalDeps) {
  const known = new Map<string, Meant>()
  const sources = new Map<DatasourceId, Promise<Source | null>>()
  const sourceOf = async (id: DatasourceId): Promise<Source | null> => {
    const versions = await versionsNow(store, id)
    const [full, exposed] = await Promise.all([catalogs.full(versions), catalogs.exposed(versions)])
    return full === null || exposed === null ? null : { full, shown: columnsByTable(exposed) }
  }
  return async (id: DatasourceId, blocked: Denied['blocked'], text: string | null): Promise<Meant> => {
    // exposureFromRefusal needs the text of the query, and can add only tables and columns.
    if (text === null || (blocked.kind !== 'table' && blocked.kind !== 'column')) return NOT_FIXABLE
    const key = JSON.stringify([id, blocked.kind, blocked.name, text])
    const found = known.get(key)
    if (found !== undefined) return found
    if (known.size >= TEXTS_MAX) return NOT_FIXABLE
    let source = sources.get(id)
    if (source === undefined) sources.set(id, (source = sourceOf(id)))
    const at = await source
    const meant = at === null ? NOT_FIXABLE : meantBy(at, blocked, text)
    known.set(key, meant)
    await setImmediate()
    return meant
  }
}

interface Source {
  readonly full: Catalog
  readonly shown: ReadonlyMap<string, ReadonlySet<string>>
}

function columnsByTable({ tables }: Catalog): Source['shown'] {
  return new Map(
    tables.map((each) => [tableKey(each.schema, each.table), new Set(each.columns.map(({ name }) => name))]),
  )
}

function meantBy({ full, shown }: Source, blocked: Denied['blocked'], text: string): Meant {
  const near = mentioned(full, text)
  const shownIn = (table: { readonly schema: string; readonly table: string }) =>
    shown.get(tableKey(table.schema, table.table))
  if (blocked.kind === 'table') {
    const hidden = near.filter((table) => shownIn(table) === undefined)
    return oneOf(
      tablesMeant(hidden, blocked.name).map((table) => ({
        place: { schema: table.schema, table: table.table },
        fixable: table.columns.some((column) => column.unexposable === null),
      })),
    )
  }
  return oneOf(
    near.flatMap((table) => {
      const names = shownIn(table)
      const hidden = table.columns.filter((column) => names?.has(column.name) !== true)
      return columnsMeant(hidden, blocked.name, table.columns).map((column) => ({
        place: { schema: table.schema, table: table.table, column: column.name },
        fixable: column.unexposable === null,
      }))
    }),
  )
}

function oneOf(candidates: readonly { readonly place: Omit<Meant, 'fixable'>; readonly fixable: boolean }[]): Meant {
  const fixable = candidates.some((each) => each.fixable)
  const [only, another] = candidates
  return only !== undefined && another === undefined ? { ...only.place, fixable } : { fixable }
}
