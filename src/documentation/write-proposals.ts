// Writes proposals, table by table, within one job. Whoever wrote it, an example is confined and run before it is
// proposed, and only what may be seen under the exposure is kept.
import { setImmediate } from 'node:timers/promises'
import type { Catalog, CatalogTable, DatasourceType, Driver } from '../drivers/driver.ts'
import { tableKey } from '../drivers/table-key.ts'
import { AppError } from '../errors.ts'
import { notIntrospected } from '../exposure/refusals.ts'
import type { DatasourceId } from '../ids.ts'
import { profilesOf } from '../profiles/stored.ts'
import { aboutTables, type About } from './about.ts'
import { draftOf, keepDraft, raised, type DocumentationDeps } from './documentation.ts'
import { EMPTY } from './draft.ts'
import type { Model } from './model.ts'
import { Naming } from './named.ts'
import { merged, type Example, type Proposal, type ProposedText } from './proposal.ts'
import { writeByRules } from './rules.ts'
import { Sight } from './shown.ts'

/** Whether a query passes the guard and the database answers it; tried with few rows and little time. */
export type TryQuery = (id: DatasourceId, query: string, signal: AbortSignal) => Promise<boolean>

export interface WriterDeps extends Pick<DocumentationDeps, 'store' | 'catalogs'> {
  readonly drivers: ReadonlyMap<DatasourceType, Driver>
  readonly tryQuery: TryQuery
}

interface TableName {
  readonly schema: string
  readonly table: string
}

/** The `result` of the job. `failed`: tables the model did not answer for; the rules wrote of them instead. */
export interface Generated {
  readonly tables: number
  readonly proposed: number
  readonly failed: readonly TableName[]
}

const EXAMPLES_TRIED = 4
/** Questions a model is asked at once. */
const MODEL_AT_ONCE = 4
/** After so many tables in a row without an answer it is not asked again. */
const MODEL_PATIENCE = 8

/** `model` null: by rules. Throws what the database says where it cannot be reached, and the reason of `signal`. */
export async function writeProposals(
  deps: WriterDeps,
  id: DatasourceId,
  asked: { readonly tables: readonly TableName[] | null; readonly model: Model | null },
  progress: (done: number, total: number) => void,
  signal: AbortSignal,
): Promise<Generated> {
  const scene = await sceneOf(deps, id)
  const chosen = asked.tables === null ? null : new Set(asked.tables.map((name) => tableKey(name.schema, name.table)))
  const isAsked = ({ schema, table }: CatalogTable) => chosen === null || chosen.has(tableKey(schema, table))
  const profiles = await profilesOf(deps.store.db, id)
  const abouts = aboutTables(scene.driver, scene.exposed, profiles, tableKey, isAsked)
  const stop = new AbortController()
  const writer = new Writer(deps, scene, asked.model, AbortSignal.any([signal, stop.signal]))
  progress(0, abouts.length)
  let done = 0
  const todo = abouts.values()
  const work = async () => {
    for (const about of todo) {
      await writer.table(about)
      progress(++done, abouts.length)
    }
  }
  const workers = Array.from({ length: asked.model === null ? 1 : MODEL_AT_ONCE }, () => work())
  try {
    await Promise.all(workers)
  } catch (error) {
    stop.abort(error)
    await Promise.allSettled(workers)
    throw error
  }
  return { tables: abouts.length, proposed: writer.proposed, failed: writer.failed }
}

interface Scene {
  readonly id: DatasourceId
  readonly driver: Driver
  readonly exposed: Catalog
  readonly sight: Sight
  readonly naming: Naming
}

async function sceneOf(deps: WriterDeps, id: DatasourceId): Promise<Scene> {
  const row = await deps.store.db.selectFrom('datasources').selectAll().where('id', '=', id).executeTakeFirst()
  const driver = row === undefined ? undefined : deps.drivers.get(row.type)
  if (row === undefined || driver === undefined) {
    throw new AppError('CONFLICT', 'This datasource was deleted meanwhile.')
  }
  const [full, exposed] = await Promise.all([deps.catalogs.full(row), deps.catalogs.exposed(row)])
  if (full === null || exposed === null) throw notIntrospected()
  return { id, driver, exposed, sight: new Sight(exposed, full), naming: new Naming(exposed) }
}

/** One run: what it was told, and what has become of it. */
class Writer {
  proposed = 0
  readonly failed: TableName[] = []
  readonly #deps: WriterDeps
  readonly #scene: Scene
  readonly #model: Model | null
  readonly #signal: AbortSignal
  #unanswered = 0
  /** One example at a time, so that callers' queries keep their connections. */
  #trying: Promise<unknown> = Promise.resolve()

  constructor(deps: WriterDeps, scene: Scene, model: Model | null, signal: AbortSignal) {
    this.#deps = deps
    this.#scene = scene
    this.#model = model
    this.#signal = signal
  }

  async table(about: About): Promise<void> {
    await setImmediate()
    this.#signal.throwIfAborted()
    const own = writeByRules(about, (question) => this.#scene.driver.phrase(question))
    const written = this.#model === null ? own : await this.#byModel(this.#model, about, own)
    await this.#propose(about.table, written)
  }

  /** What the model writes, with our examples behind its own; where it does not, what the rules do. */
  async #byModel(model: Model, about: About, own: Proposal): Promise<Proposal> {
    const { schema, table } = about.table
    if (this.#unanswered < MODEL_PATIENCE) {
      try {
        const written = await model.propose(about, this.#scene.naming, this.#signal)
        this.#unanswered = 0
        return { ...written, examples: [...written.examples, ...own.examples] }
      } catch {
        this.#signal.throwIfAborted()
        this.#unanswered++
      }
    }
    this.failed.push({ schema, table })
    return own
  }

  /** Keeps what may be seen. */
  async #propose(table: CatalogTable, written: Proposal): Promise<void> {
    const { store } = this.#deps
    const { id, sight } = this.#scene
    const here = sight.of(table)
    if (here === null) return
    const seen = <T extends ProposedText>(said: T): boolean => here.maySee(said)
    const example = await this.#firstThatRuns(written.examples.filter(seen))
    const proposal = {
      summary: written.summary !== null && seen(written.summary) ? written.summary : null,
      statements: written.statements.filter(seen),
      columns: new Map([...written.columns].filter(([, said]) => seen(said))),
      example,
    }
    this.#signal.throwIfAborted()
    this.proposed += await store.write(async (tx) => {
      const before = (await draftOf(tx, id, table)) ?? EMPTY
      const { draft, proposed } = merged(before, proposal, here.known)
      if (JSON.stringify(draft) === JSON.stringify(before)) return 0
      await raised(tx, id, undefined)
      await keepDraft(tx, id, table, draft, null)
      return proposed
    })
  }

  async #firstThatRuns(examples: readonly Example[]): Promise<Example | null> {
    for (const example of examples.slice(0, EXAMPLES_TRIED)) {
      const turn = this.#trying.then(() => this.#deps.tryQuery(this.#scene.id, example.query, this.#signal))
      this.#trying = turn.catch(() => undefined)
      if (await turn) return example
    }
    return null
  }
}
