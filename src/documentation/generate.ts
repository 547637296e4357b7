// Proposes texts for exposed tables, in a job: by rules, or by the operator's language model. Whoever wrote it, an
// example is confined and run before it is proposed, and nothing is published before a person accepts it.
import { setImmediate } from 'node:timers/promises'
import { z } from 'zod'
import type { Call } from '../auth/caller.ts'
import type { Catalog, CatalogTable, DatasourceType, Driver } from '../drivers/driver.ts'
import { tableKey } from '../drivers/table-key.ts'
import { AppError, invalidRequest } from '../errors.ts'
import { notIntrospected } from '../exposure/refusals.ts'
import type { DatasourceId, JobId } from '../ids.ts'
import type { Jobs } from '../jobs/jobs.ts'
import { profilesOf } from '../profiles/stored.ts'
import { aboutTables, type About } from './about.ts'
import { othersOf, RestingPlace } from './columns.ts'
import {
  draftOf,
  findTable,
  keepDraft,
  raised,
  type DocumentationDeps,
  type DocumentationPlace,
} from './documentation.ts'
import { EMPTY } from './draft.ts'
import { HiddenNames, hiddenColumns, hiddenTables } from './hidden-names.ts'
import { merged, type Example, type Proposal, type ProposedText } from './proposal.ts'
import { writeByRules } from './rules.ts'
import { maySee, type Sight } from './shown.ts'

/** Whether a query passes the guard and the database answers it; tried with few rows and little time. */
export type TryQuery = (id: DatasourceId, query: string, signal: AbortSignal) => Promise<boolean>

/** The operator's language model; it is told what the exposure shows and nothing else. Throws where it cannot. */
export interface Model {
  propose(about: About, signal: AbortSignal): Promise<Proposal>
}

export interface GenerateDeps extends DocumentationDeps {
  readonly jobs: Jobs
  readonly drivers: ReadonlyMap<DatasourceType, Driver>
  readonly tryQuery: TryQuery
  /** Null where the operator named none. */
  readonly model: Model | null
}

const KIND = 'document'
const GENERATE_MS = 60 * 60_000
const EXAMPLES_TRIED = 3

const Input = z.object({
  tables: z.array(z.object({ schema: z.string(), table: z.string() })).nullable(),
  model: z.boolean(),
})
type Input = z.infer<typeof Input>

/**
 * Starts the writing. Throws NOT_CONNECTED before the first introspection, INVALID_REQUEST for a table that is not
 * exposed and for a model where there is none.
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
  const exposed = await deps.catalogs.exposed(at.row)
  if (exposed === null) throw notIntrospected()
  const problems = (asked.tables ?? [])
    .filter(({ schema, table }) => findTable(exposed.tables, schema, table) === null)
    .map(({ schema, table }) => `tables: ${schema}.${table} is not exposed`)
  if (asked.model === true && deps.model === null) problems.push('model: no language model is set up for this service')
  if (problems.length > 0) throw invalidRequest(problems)
  const tables = asked.tables?.map(({ schema, table }) => ({ schema, table })) ?? null
  const job = await deps.jobs.begin(at.id, KIND, { tables, model: asked.model ?? deps.model !== null })
  // Its end stands with the job; nobody else waits for it here.
  job.ended.catch(() => undefined)
  deps.audit.record(call, { teamId: at.teamId, datasourceId: at.id, outcome: 'ANSWERED' })
  return { jobId: job.id }
}

/** Makes the writing go on after a restart; said once, before the first is asked for. */
export function resumeGeneration(deps: GenerateDeps): void {
  deps.jobs.resumable(KIND, (id, input) => async (progress, ended) => {
    const signal = AbortSignal.any([ended, AbortSignal.timeout(GENERATE_MS)])
    return await generate(deps, id, Input.parse(input), progress, signal)
  })
}

/** The `result` of the job. `failed`: tables the model did not answer for; the rules wrote of them instead. */
interface Generated {
  readonly tables: number
  readonly proposed: number
  readonly failed: readonly { readonly schema: string; readonly table: string }[]
}

async function generate(
  deps: GenerateDeps,
  id: DatasourceId,
  input: Input,
  progress: (done: number, total: number) => void,
  signal: AbortSignal,
): Promise<Generated> {
  const scene = await sceneOf(deps, id)
  const asked = input.tables === null ? null : new Set(input.tables.map(({ schema, table }) => tableKey(schema, table)))
  const isAsked = ({ schema, table }: CatalogTable) => asked === null || asked.has(tableKey(schema, table))
  const profiles = await profilesOf(deps.store.db, id)
  const abouts = aboutTables(scene.driver, scene.exposed, profiles, tableKey, isAsked)
  const failed: { schema: string; table: string }[] = []
  let proposed = 0
  progress(0, abouts.length)
  for (const [done, about] of abouts.entries()) {
    await setImmediate()
    signal.throwIfAborted()
    const { schema, table } = about.table
    const own = writeByRules(about, (question) => scene.driver.phrase(question))
    const written = input.model && deps.model !== null ? await asModel(deps.model, about, own, signal) : own
    if (written === null) failed.push({ schema, table })
    proposed += await propose(deps, scene, about, written ?? own, signal)
    progress(done + 1, abouts.length)
  }
  return { tables: abouts.length, proposed, failed }
}

interface Scene {
  readonly id: DatasourceId
  readonly driver: Driver
  readonly exposed: Catalog
  readonly full: Catalog
  readonly visible: ReadonlyMap<string, string>
  readonly known: ReadonlyMap<string, string>
  readonly hiddenTables: ReadonlyMap<string, string>
}

async function sceneOf(deps: GenerateDeps, id: DatasourceId): Promise<Scene> {
  const row = await deps.store.db.selectFrom('datasources').selectAll().where('id', '=', id).executeTakeFirst()
  const driver = row === undefined ? undefined : deps.drivers.get(row.type)
  if (row === undefined || driver === undefined)
    throw new AppError('CONFLICT', 'This datasource was deleted meanwhile.')
  const [full, exposed] = await Promise.all([deps.catalogs.full(row), deps.catalogs.exposed(row)])
  if (full === null || exposed === null) throw notIntrospected()
  const [visible, known] = [othersOf(exposed), othersOf(full)]
  return { id, driver, exposed, full, visible, known, hiddenTables: hiddenTables(exposed, full) }
}

/** What the model writes, with our examples behind its own; null where it did not. */
async function asModel(model: Model, about: About, own: Proposal, signal: AbortSignal): Promise<Proposal | null> {
  try {
    const written = await model.propose(about, signal)
    return { ...written, examples: [...written.examples, ...own.examples] }
  } catch (error) {
    if (signal.aborted) throw error
    return null
  }
}

/** Keeps what may be seen, and answers how many texts of it are new. */
async function propose(
  deps: GenerateDeps,
  scene: Scene,
  about: About,
  written: Proposal,
  signal: AbortSignal,
): Promise<number> {
  const sight = sightOf(scene, about.table)
  const seen = <T extends ProposedText>(said: T): boolean => maySee(said, sight)
  const example = await firstThatRuns(deps, scene.id, written.examples.filter(seen), signal)
  const proposal = {
    summary: written.summary !== null && seen(written.summary) ? written.summary : null,
    statements: written.statements.filter(seen),
    columns: new Map([...written.columns].filter(([name, said]) => sight.visible.isOwn(name) && seen(said))),
    example,
  }
  const name = { schema: about.table.schema, table: about.table.table }
  return await deps.store.write(async (tx) => {
    const before = (await draftOf(tx, scene.id, name)) ?? EMPTY
    const { draft, proposed } = merged(before, proposal, sight.known)
    if (JSON.stringify(draft) === JSON.stringify(before)) return 0
    await raised(tx, scene.id, undefined)
    await keepDraft(tx, scene.id, name, draft, null)
    return proposed
  })
}

function sightOf(scene: Scene, exposed: CatalogTable): Sight {
  const full = findTable(scene.full.tables, exposed.schema, exposed.table) ?? exposed
  return {
    exposed,
    visible: new RestingPlace(exposed, scene.visible),
    known: new RestingPlace(full, scene.known),
    hidden: new HiddenNames(hiddenColumns(exposed, full), scene.hiddenTables),
  }
}

async function firstThatRuns(
  deps: GenerateDeps,
  id: DatasourceId,
  examples: readonly Example[],
  signal: AbortSignal,
): Promise<Example | null> {
  for (const example of examples.slice(0, EXAMPLES_TRIED)) {
    if (await deps.tryQuery(id, example.query, signal)) return example
  }
  return null
}
