// A job that proposes texts for exposed tables, by rules or by the operator's language model. The job resumes after a
// restart. A text is published only after a person has accepted it.
import { z } from 'zod'
import type { Call } from '../auth/caller.ts'
import { AppError, invalidRequest } from '../errors.ts'
import { orderJob } from '../jobs/start-job.ts'
import { notIntrospected, requireUsable } from '../exposure/require-usable.ts'
import type { JobId } from '../ids.ts'
import type { Jobs } from '../jobs/jobs.ts'
import { tableKey } from '../drivers/table-key.ts'
import type { DocumentationDeps, DocumentationPlace } from './drafts.ts'
import type { Model } from './write-by-model.ts'
import { writeProposals, type Generated, type WriterDeps } from './write-proposals.ts'

export interface GenerateDeps extends DocumentationDeps, WriterDeps {
  readonly jobs: Jobs
  readonly model: Model | null
}

const KIND = 'document'
const GENERATE_MS = 60 * 60_000

const Input = z.object({
  tables: z.array(z.object({ schema: z.string(), table: z.string() })).nullable(),
  model: z.boolean(),
})

/**
 * If a job with the same request is running, returns its id. Throws DATASOURCE_DISABLED, NOT_CONNECTED before the first
 * introspection, INVALID_REQUEST for a table that is not exposed or a model that is not configured, and CONFLICT while
 * another job of this kind runs for the datasource.
 */
export async function generateDocumentation(
  deps: GenerateDeps,
  call: Call,
  at: DocumentationPlace,
  request: {
    readonly tables?: readonly { readonly schema: string; readonly table: string }[]
    readonly model?: boolean
  } = {},
): Promise<{ readonly jobId: JobId }> {
  requireUsable(at.row)
  const exposed = await deps.catalogs.exposed(at.row)
  if (exposed === null) throw notIntrospected()
  const names = new Set(exposed.tables.map(({ schema, table }) => tableKey(schema, table)))
  const problems = (request.tables ?? []).flatMap(({ schema, table }, n) =>
    names.has(tableKey(schema, table)) ? [] : [`tables.${n}: this table is not exposed`],
  )
  if (request.model === true && deps.model === null)
    problems.push('model: no language model is configured for this service')
  if (problems.length > 0) throw invalidRequest(problems)
  const tables = request.tables?.map(({ schema, table }) => ({ schema, table })) ?? null
  const input = { tables, model: request.model ?? deps.model !== null }
  const busy = 'Proposals for this datasource are already being written. Wait for the job to finish, or cancel it.'
  return await orderJob(deps, call, at, { kind: KIND, input, atMost: 1, busy })
}

/** Lets jobs resume after a restart. Call this once, before the first job. */
export function resumeGeneration(deps: GenerateDeps): void {
  deps.jobs.resumable(KIND, (id, input) => async (progress, ended): Promise<Generated> => {
    const { tables, model } = Input.parse(input)
    const late = AbortSignal.timeout(GENERATE_MS)
    try {
      const request = { tables, model: model ? deps.model : null }
      return await writeProposals(deps, id, request, progress, AbortSignal.any([ended, late]))
    } catch (error) {
      if (!late.aborted || ended.aborted) throw error
      const message =
        'Writing the proposals took too long. Finished tables are kept. Request proposals for the remaining tables by name.'
      throw new AppError('QUERY_TIMEOUT', message, { cause: error })
    }
  })
}
