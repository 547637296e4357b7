// Writes proposals table by table within one job. An example query is proposed only if it passes the guard and runs.
// Only texts that may be shown under the current exposure are stored.
import { setImmediate } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { Progress } from '../jobs/job-types.ts'
import type { Selectable } from 'kysely'
import type { CatalogTable, Driver } from '../drivers/driver.ts'
import type { DatasourceType } from '../drivers/datasource-type.ts'
import { tableKey } from '../drivers/table-key.ts'
import { AppError } from '../errors.ts'
import { notIntrospected } from '../exposure/require-usable.ts'
import type { DatasourceId } from '../ids.ts'
import { profilesOf } from '../profiles/stored-profiles.ts'
import type { DatasourceTable } from '../store/tables.ts'
import { writerContexts, type WriterContext } from './writer-context.ts'
import { draftOf, saveDraft, raiseVersion, type DocumentationDeps } from './drafts.ts'
import { EMPTY, writeDraft } from './stored-draft.ts'
import type { Model } from './write-by-model.ts'
import { ColumnMentions } from './column-mentions.ts'
import { mergeProposal, type Example, type Proposal, type ProposedText } from './proposal.ts'
import { writeByRules } from './write-by-rules.ts'
import { Visibility } from './visible-texts.ts'

/**
 * Returns true if the query passes the guard and the database answers it. Uses a small row limit and a short timeout.
 */
export type TryQuery = (id: DatasourceId, query: string, signal: AbortSignal) => Promise<boolean>

export interface WriterDeps extends Pick<DocumentationDeps, 'store' | 'catalogs'> {
  readonly drivers: ReadonlyMap<DatasourceType, Driver>
  readonly tryQuery: TryQuery
}

interface TableName {
  readonly schema: string
  readonly table: string
}

/** `failed` lists the tables for which the rules wrote the texts, because the model failed. */
export interface Generated {
  readonly tables: number
  readonly proposed: number
  readonly failed: readonly TableName[]
}

const EXAMPLES_TRIED = 4
/** The texts of a table are written again if the catalog, the exposure or the profiles change meanwhile. */
const TRIES = 5
const MODEL_AT_ONCE = 4
/** After this many tables in a row without a valid answer, the model is not asked again. */
const MODEL_PATIENCE = 8

/**
 * Writes proposals by the rules if `model` is null. Throws the database's error if it is unreachable, the signal's
 * reason if `signal` aborts, and CONFLICT if the datasource was deleted or kept changing.
 */
export async function writeProposals(
  deps: WriterDeps,
  id: DatasourceId,
  request: { readonly tables: readonly TableName[] | null; readonly model: Model | null },
  progress: Progress,
  signal: AbortSignal,
): Promise<Generated> {
  const chosen =
    request.tables === null ? null : new Set(request.tables.map((name) => tableKey(name.schema, name.table)))
  const scene = await sceneOf(deps, id, chosen)
  const stop = new AbortController()
  const writer = new Writer(deps, scene, request.model, AbortSignal.any([signal, stop.signal]))
  const tables = [...scene.contexts]
  progress(0, tables.length)
  let done = 0
  const todo = tables.values()
  const work = async () => {
    for (const [key, { table }] of todo) {
      progress(done, tables.length, scene.driver.typed([table.schema, table.table]))
      await writer.table(key)
      progress(++done, tables.length)
    }
  }
  const workers = Array.from({ length: request.model === null ? 1 : MODEL_AT_ONCE }, () => work())
  try {
    await Promise.all(workers)
  } catch (error) {
    stop.abort(error)
    await Promise.allSettled(workers)
    throw error
  }
  return { tables: tables.length, proposed: writer.proposed, failed: writer.failed }
}

/** The names and values that the texts may contain, as read at `versions`. */
interface Scene {
  readonly id: DatasourceId
  readonly versions: string
  /** Null means every exposed table. */
  readonly chosen: ReadonlySet<string> | null
  readonly driver: Driver
  readonly contexts: ReadonlyMap<string, WriterContext>
  readonly sight: Visibility
  readonly naming: ColumnMentions
}

async function sceneOf(deps: WriterDeps, id: DatasourceId, chosen: Scene['chosen'], known?: Scene): Promise<Scene> {
  const row = await deps.store.db.selectFrom('datasources').selectAll().where('id', '=', id).executeTakeFirst()
  const driver = row === undefined ? undefined : deps.drivers.get(row.type)
  if (row === undefined || driver === undefined) {
    throw new AppError('CONFLICT', 'This datasource was deleted in the meantime.')
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

/**
 * Compares only the table's own columns and profile. Dependencies on other tables are checked when a text is stored.
 */
function isSameContext(a: WriterContext, b: WriterContext): boolean {
  return isDeepStrictEqual([a.table.columns, a.profile], [b.table.columns, b.profile])
}

function versionsOf(
  row: Pick<Selectable<DatasourceTable>, 'catalog_version' | 'exposure_version' | 'profile_version'>,
) {
  return [row.catalog_version, row.exposure_version, row.profile_version].join('/')
}

class Writer {
  proposed = 0
  readonly failed: TableName[] = []
  readonly #deps: WriterDeps
  #scene: Scene
  readonly #model: Model | null
  readonly #signal: AbortSignal
  #unanswered = 0
  /** Runs one example at a time, so that other connections stay free for the queries of callers. */
  #trying: Promise<unknown> = Promise.resolve()

  constructor(deps: WriterDeps, scene: Scene, model: Model | null, signal: AbortSignal) {
    this.#deps = deps
    this.#scene = scene
    this.#model = model
    this.#signal = signal
  }

  /** Reads the exposure again for each table, because a column may be hidden while the job runs. */
  async table(key: string): Promise<void> {
    await setImmediate()
    this.#signal.throwIfAborted()
    let last: { readonly about: WriterContext; readonly written: Proposal } | null = null
    for (let tried = 1; ; tried++) {
      const scene = await this.#now()
      const about = scene.contexts.get(key)
      if (about === undefined) return
      if (last === null || !isSameContext(last.about, about)) last = { about, written: await this.#write(scene, about) }
      if (await this.#propose(scene, about.table, last.written)) return
      if (tried === TRIES)
        throw new AppError('CONFLICT', 'This datasource kept changing while proposals were written. Try again.')
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

  /** Returns the model's proposal with the examples of the rules, or the rules' proposal if the model fails. */
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

  /** Returns false if the versions changed since the texts were written, or if the datasource was deleted. */
  async #propose({ id, sight, versions }: Scene, table: CatalogTable, written: Proposal): Promise<boolean> {
    const { store } = this.#deps
    const visible = sight.of(table)
    if (visible === null) return true
    const seen = <T extends ProposedText>(said: T): boolean => visible.maySee(said)
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
      const { draft, proposed } = mergeProposal(before, proposal, visible.known)
      if (writeDraft(draft) === writeDraft(before)) return 0
      await raiseVersion(tx, id, undefined)
      await saveDraft(tx, id, table, draft, null)
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
