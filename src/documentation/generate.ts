// Proposes texts for exposed tables, in a job that goes on after a restart: by rules, or by the operator's language
// model. Nothing of it is published before a person accepts it.
import { z } from 'zod'
import type { Call } from '../auth/caller.ts'
import { AppError, invalidRequest } from '../errors.ts'
import { orderJob } from '../exposure/ordered-job.ts'
import { notIntrospected, requireUsable } from '../exposure/refusals.ts'
import type { JobId } from '../ids.ts'
import type { Jobs } from '../jobs/jobs.ts'
import { tableKey } from '../drivers/table-key.ts'
import type { DocumentationDeps, DocumentationPlace } from './documentation.ts'
import type { Model } from './model.ts'
import { writeProposals, type Generated, type WriterDeps } from './write-proposals.ts'

export interface GenerateDeps extends DocumentationDeps, WriterDeps {
  readonly jobs: Jobs
  /** Null where the operator named none. */
  readonly model: Model | null
}

const KIND = 'document'
const GENERATE_MS = 60 * 60_000

const Input = z.object({
  tables: z.array(z.object({ schema: z.string(), table: z.string() })).nullable(),
  model: z.boolean(),
})

/**
 * Starts the writing; the same asked for again while it runs is the same job. Throws DATASOURCE_DISABLED, NOT_CONNECTED
 * before the first introspection, INVALID_REQUEST for a table that is not exposed and for a model where there is none.
 */
export async function generateDocumentation(
  deps: GenerateDeps,
  call: Call,
  at: DocumentationPlace,
  asked: {
    readonly tables?: readonly { readonly schema: string; readonly table: string }[]
    readonly model?: boolean
  } = {},
): Promise<{ readonly jobId: JobId }> {
  requireUsable(at.row)
  const exposed = await deps.catalogs.exposed(at.row)
  if (exposed === null) throw notIntrospected()
  const names = new Set(exposed.tables.map(({ schema, table }) => tableKey(schema, table)))
  const problems = (asked.tables ?? []).flatMap(({ schema, table }, n) =>
    names.has(tableKey(schema, table)) ? [] : [`tables.${n}: this table is not exposed`],
  )
  if (asked.model === true && deps.model === null) problems.push('model: no language model is set up for this service')
  if (problems.length > 0) throw invalidRequest(problems)
  const tables = asked.tables?.map(({ schema, table }) => ({ schema, table })) ?? null
  const input = { tables, model: asked.model ?? deps.model !== null }
  const busy = 'Proposals are being written for this datasource already. Wait for them, or cancel it.'
  return await orderJob(deps, call, at, { kind: KIND, input, atMost: 1, busy })
}

/** Makes the writing go on after a restart; said once, before the first is asked for. */
export function resumeGeneration(deps: GenerateDeps): void {
  deps.jobs.resumable(KIND, (id, input) => async (progress, ended): Promise<Generated> => {
    const { tables, model } = Input.parse(input)
    const late = AbortSignal.timeout(GENERATE_MS)
    try {
      const asked = { tables, model: model ? deps.model : null }
      return await writeProposals(deps, id, asked, progress, AbortSignal.any([ended, late]))
    } catch (error) {
      if (!late.aborted || ended.aborted) throw error
      const message = 'The writing took too long. What was proposed until then is kept; ask for the rest by its tables.'
      throw new AppError('QUERY_TIMEOUT', message, { cause: error })
    }
  })
}
