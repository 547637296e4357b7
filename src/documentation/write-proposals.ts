// Writes proposals, table by table, within one job. Whoever wrote it, an example is confined and run before it is
// proposed, and only what may be seen under the exposure is kept.
import { setImmediate } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { Selectable } from 'kysely'
import type { CatalogTable, DatasourceType, Driver } from '../drivers/driver.ts'
import { tableKey } from '../drivers/table-key.ts'
import { AppError } from '../errors.ts'
import { notIntrospected } from '../exposure/refusals.ts'
import type { DatasourceId } from '../ids.ts'
import { profilesOf } from '../profiles/stored.ts'
import type { DatasourceTable } from '../store/tables.ts'
import { writerContexts, type WriterContext } from './writer-context.ts'
import { draftOf, keepDraft, raised, type DocumentationDeps } from './documentation.ts'
import { EMPTY, writeDraft } from './draft.ts'
import type { Model } from './model.ts'
import { ColumnMentions } from './column-mentions.ts'
import { merged, type Example, type Proposal, type ProposedText } from './proposal.ts'
import { writeByRules } from './rules.ts'
import { Visibility } from './visible-texts.ts'

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
/** What is shown, or who is a person, may change while a table is written of. */
const TRIES = 5
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
  const chosen = asked.tables === null ? null : new Set(asked.tables.map((name) => tableKey(name.schema, name.table)))
  const scene = await sceneOf(deps, id, chosen)
  const stop = new AbortController()
  const writer = new Writer(deps, scene, asked.model, AbortSignal.any([signal, stop.signal]))
  const tables = [...scene.contexts.keys()]
  progress(0, tables.length)
  let done = 0
  const todo = tables.values()
  const work = async () => {
    for (const key of todo) {
      await writer.table(key)
      progress(++done, tables.length)
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
  return { tables: tables.length, proposed: writer.proposed, failed: writer.failed }
}

/** What may be told and seen, as long as these versions stand. */
interface Scene {
  readonly id: DatasourceId
  readonly versions: string
  /** The tables asked for; null: every exposed one. */
  readonly chosen: ReadonlySet<string> | null
  readonly driver: Driver
  readonly contexts: ReadonlyMap<string, WriterContext>
  readonly sight: Visibility
  readonly naming: ColumnMentions
}

/** `known`, where it still holds. */
async function sceneOf(deps: WriterDeps, id: DatasourceId, chosen: Scene['chosen'], known?: Scene): Promise<Scene> {
  const row = await deps.store.db.selectFrom('datasources').selectAll().where('id', '=', id).executeTakeFirst()
  const driver = row === undefined ? undefined : deps.drivers.get(row.type)
  if (row === undefined || driver === undefined) {
    throw new AppError('CONFLICT', 'This datasource was deleted meanwhile.')
  }
  const versions = versionsOf(row)
  if (known?.versions === versions) return known
  const [full, exposed] = await Promise.all([deps.catalogs.full(row), deps.catalogs.exposed(row)])
  if (full === null || exposed === null) throw notIntrospected()
  const isAsked = ({ schema, table }: CatalogTable) => chosen === null || chosen.has(tableKey(schema, table))
  const contexts = writerContexts(driver, exposed, await profilesOf(deps.store.db, id), tableKey, isAsked)
  const keyed = new Map(contexts.map((about) => [tableKey(about.table.schema, about.table.table), about]))
  return {
    id,
    versions,
    chosen,
    driver,
    contexts: keyed,
    sight: new Visibility(exposed, full),
    naming: new ColumnMentions(exposed),
  }
}

/** Of the table itself: what rests on others is asked for when it is kept. */
function tellSame(a: WriterContext, b: WriterContext): boolean {
  return isDeepStrictEqual([a.table.columns, a.profile], [b.table.columns, b.profile])
}

/** What decides over what may be told. */
function versionsOf(
  row: Pick<Selectable<DatasourceTable>, 'catalog_version' | 'exposure_version' | 'profile_version'>,
) {
  return [row.catalog_version, row.exposure_version, row.profile_version].join('/')
}

/** One run: what it was told, and what has become of it. */
class Writer {
  proposed = 0
  readonly failed: TableName[] = []
  readonly #deps: WriterDeps
  #scene: Scene
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

  /** Under what is exposed now: a run may take long, and nobody is told of what was hidden meanwhile. */
  async table(key: string): Promise<void> {
    await setImmediate()
    this.#signal.throwIfAborted()
    let last: { readonly about: WriterContext; readonly written: Proposal } | null = null
    for (let tried = 1; ; tried++) {
      const scene = await this.#now()
      const about = scene.contexts.get(key)
      if (about === undefined) return
      if (last === null || !tellSame(last.about, about)) last = { about, written: await this.#write(scene, about) }
      if (await this.#propose(scene, about.table, last.written)) return
      if (tried === TRIES) throw new AppError('CONFLICT', 'This datasource was changed again and again meanwhile.')
    }
  }

  async #write({ driver }: Scene, about: WriterContext): Promise<Proposal> {
    const own = writeByRules(about, (question) => driver.phrase(question))
    return this.#model === null ? own : await this.#byModel(this.#model, about, own)
  }

  async #now(): Promise<Scene> {
    const { id, chosen } = this.#scene
    this.#scene = await sceneOf(this.#deps, id, chosen, this.#scene)
    return this.#scene
  }

  /** What the model writes, with our examples behind its own; where it does not, what the rules do. */
  async #byModel(model: Model, about: WriterContext, own: Proposal): Promise<Proposal> {
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

  /** Keeps what may be seen; false where something else may be told by now than when it was written. */
  async #propose({ id, sight, versions }: Scene, table: CatalogTable, written: Proposal): Promise<boolean> {
    const { store } = this.#deps
    const here = sight.of(table)
    if (here === null) return true
    const seen = <T extends ProposedText>(said: T): boolean => here.maySee(said)
    const example = await this.#firstThatRuns(written.examples.filter(seen))
    const proposal = {
      summary: written.summary !== null && seen(written.summary) ? written.summary : null,
      statements: written.statements.filter(seen),
      columns: new Map([...written.columns].filter(([, said]) => seen(said))),
      example,
    }
    this.#signal.throwIfAborted()
    const count = await store.write(async (tx) => {
      const row = await tx.selectFrom('datasources').selectAll().where('id', '=', id).executeTakeFirst()
      if (row === undefined || versionsOf(row) !== versions) return null
      const before = (await draftOf(tx, id, table)) ?? EMPTY
      const { draft, proposed } = merged(before, proposal, here.known)
      if (writeDraft(draft) === writeDraft(before)) return 0
      await raised(tx, id, undefined)
      await keepDraft(tx, id, table, draft, null)
      return proposed
    })
    this.proposed += count ?? 0
    return count !== null
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
