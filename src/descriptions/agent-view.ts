// Shows what an agent sees: the compact text of the tool describe_datasource, and its size in tokens.
import type { Call } from '../auth/caller.ts'
import { describedPage, tokensOf, type DescribedPage } from '../compact-text/write-page.ts'
import type { Detail } from '../compact-text/table-text.ts'
import { As, barredAs } from '../datasources/reach-as-role-or-key.ts'
import type { Reached } from '../datasources/require-reach.ts'
import type { Store } from '../store/open.ts'
import type { Descriptions } from './description-cache.ts'

interface Deps {
  readonly store: Store
  readonly descriptions: Descriptions
}

interface Ask {
  /** A role, or the id of one of the caller's keys. Default: the caller. */
  readonly as?: string
  readonly detail?: Detail
  readonly cursor?: string
}

interface AgentView {
  readonly barred: string | null
  readonly page: (DescribedPage & { readonly tokens: number }) | null
}

/**
 * Throws ROLE_REQUIRED for a role above the caller's own, NOT_FOUND for another account's key, and INVALID_REQUEST for
 * a cursor of another description.
 */
export async function viewAsAgent(deps: Deps, call: Call, at: Reached, { as, ...ask }: Ask): Promise<AgentView> {
  const barred = as === undefined ? null : await barredAs(deps, call, at, readAs(as), 'data:schema')
  return { barred, page: barred === null ? await pageOf(deps, at, ask) : null }
}

async function pageOf(deps: Deps, at: Reached, ask: Omit<Ask, 'as'>): Promise<AgentView['page']> {
  const page = await describedPage(await deps.descriptions.of(at, 'e'), { datasourceId: at.id, ...ask })
  return { ...page, tokens: tokensOf(page) }
}

/** Reads `as`: a role, or a key id. No key id equals the name of a role. */
function readAs(as: string): As {
  const role = As.safeParse({ role: as })
  return role.success ? role.data : { keyId: as }
}
