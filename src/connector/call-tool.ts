// Runs one tool. A refusal is the result of the tool, so that the model can read it and go on. Only invalid
// credentials, and a scope that a grant lacks, are answered with an HTTP status.
import type { Arrival } from '../auth/caller.ts'
import { AppError, EXPOSE_URL } from '../errors.ts'
import { HungUp } from '../hang-up.ts'
import type { Operations } from '../operations/order-of-checks.ts'
import { listDatasources, listTeams, whoami } from './account-tools.ts'
import { TOOLS, type ToolName } from './tool-definitions.ts'
import { describeDatasource } from './describe-datasource-tool.ts'
import type { ToolAnswer } from './json-rpc.ts'
import { runQuery } from './run-query-tool.ts'
import type { JsonObject } from './json-object.ts'
import { refusalBody, refusalOf, type DefectLog } from './refusal-body.ts'

export interface ToolDeps {
  readonly operations: Operations
  readonly log: DefectLog
}

export function isTool(name: string): name is ToolName {
  return TOOLS.some((tool) => tool.name === name)
}

/**
 * Returns refusals as the answer, except two that the route answers with an HTTP status. It throws UNAUTHENTICATED,
 * after which the client signs in again, and SCOPE_REQUIRED for a grant, after which the client asks for the scope.
 * Throws HungUp if the client hung up.
 */
export async function callTool(
  { operations, log }: ToolDeps,
  arrival: Arrival,
  name: ToolName,
  args: JsonObject,
): Promise<ToolAnswer> {
  try {
    return { json: await jsonOf(operations, arrival, name, args), isError: false }
  } catch (error) {
    if (error instanceof HungUp || (error instanceof AppError && isForTheDoor(error, arrival))) throw error
    const refusal = refusalOf(error, log, arrival.requestId ?? '')
    const url = refusal.headers[EXPOSE_URL]
    return {
      json: JSON.stringify(refusalBody(refusal)),
      isError: true,
      ...(url !== undefined && { aside: `A manager of the team can expose what was refused: ${url}` }),
    }
  }
}

function isForTheDoor({ code }: AppError, { caller }: Arrival): boolean {
  return code === 'UNAUTHENTICATED' || (code === 'SCOPE_REQUIRED' && caller.kind !== 'key')
}

async function jsonOf(operations: Operations, arrival: Arrival, name: ToolName, args: JsonObject): Promise<string> {
  switch (name) {
    case 'whoami':
      return JSON.stringify(await whoami(operations, arrival, args))
    case 'list_teams':
      return JSON.stringify(await listTeams(operations, arrival, args))
    case 'list_datasources':
      return JSON.stringify(await listDatasources(operations, arrival, args))
    case 'describe_datasource':
      return JSON.stringify(await describeDatasource(operations, arrival, args))
    case 'run_query':
      return await runQuery(operations, arrival, args)
    default:
      return name satisfies never
  }
}
