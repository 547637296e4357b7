// The tool describe_datasource: the description of REST as compact text, page by page.
import { z } from 'zod'
import type { Arrival } from '../auth/caller.ts'
import { describedPage, type DescribedPage } from '../compact-text/write-page.ts'
import { DETAILS } from '../compact-text/table-text.ts'
import type { Operations } from '../operations/order-of-checks.ts'
import { ownJson } from '../operations/prebuilt-json.ts'
import { BudgetTokens, Id, readArguments } from './tool-arguments.ts'
import type { JsonObject } from './json-object.ts'

const Arguments = z.strictObject({
  teamId: Id,
  datasourceId: Id,
  search: z.string().max(200).exactOptional(),
  tables: z.array(z.string().max(1_024)).max(50).exactOptional(),
  detail: z.enum(DETAILS).exactOptional(),
  cursor: z.string().max(512).exactOptional(),
  budgetTokens: BudgetTokens.exactOptional(),
})

export async function describeDatasource(
  operations: Pick<Operations, 'describeDatasource'>,
  arrival: Arrival,
  args: JsonObject,
): Promise<DescribedPage> {
  const { teamId, ...ask } = readArguments(Arguments, args)
  const params = { teamId, id: ask.datasourceId }
  const described = await operations.describeDatasource(arrival, { params, query: {} })
  return await describedPage({ ...described, json: ownJson(described.json) }, ask)
}
