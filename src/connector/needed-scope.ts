// Finds the scope that a message needs. If a grant lacks it, the answer is a 403 that names the scope, so that the
// client can ask the person for it. If an API key lacks it, the operation refuses the call later.
import type { Caller, Scope } from '../auth/caller.ts'
import type { Route } from '../contract/route-type.ts'
import { ROUTES } from '../contract/key-routes.ts'
import { admit } from '../operations/admit.ts'
import type { ToolName } from './tool-definitions.ts'
import { isObject } from './json-object.ts'

const TOOL_ROUTES: Readonly<Record<ToolName, Pick<Route, 'scope'>>> = {
  whoami: ROUTES.getAccount,
  list_teams: ROUTES.listTeams,
  list_datasources: ROUTES.listDatasources,
  describe_datasource: ROUTES.describeDatasource,
  run_query: ROUTES.runQuery,
}

function scopeOf(body: unknown): Scope | undefined {
  if (!isObject(body)) return undefined
  const { method, params } = body
  if (method === 'resources/list' || method === 'resources/read') return ROUTES.describeDatasource.scope
  if (method !== 'tools/call' || !isObject(params)) return undefined
  const { name } = params
  return Object.entries(TOOL_ROUTES).find(([tool]) => tool === name)?.[1].scope
}

/** Throws SCOPE_REQUIRED if a grant lacks the scope. */
export function requireScope(caller: Caller, body: unknown): void {
  if (caller.kind === 'key') return
  const scope = scopeOf(body)
  if (scope !== undefined) admit(caller, { scope })
}
