// A manager accepts many proposed texts at once, which saves one new version of the documentation. A text stays
// proposed if a column that it depends on has changed since the text was written.
import type { Transaction } from 'kysely'
import { changesOf, listedOf, pathName } from '../audit/recorded-changes.ts'
import type { Call } from '../auth/caller.ts'
import type { Catalog } from '../drivers/driver.ts'
import { tableKey } from '../drivers/table-key.ts'
import { invalidRequest, notFound } from '../errors.ts'
import { targetOf } from '../exposure/audited-target.ts'
import { inSlices } from '../event-loop-slices.ts'
import type { Tables } from '../store/tables.ts'
import { Others, RestingPlace } from './text-dependencies.ts'
import {
  conflict,
  draftsOf,
  raiseVersion,
  saveDraft,
  type DocumentationDeps,
  type DocumentationPlace,
} from './drafts.ts'
import { isStale, type Draft, type Said } from './stored-draft.ts'

const KINDS = ['summary', 'examples', 'statements', 'columns'] as const
type Kind = (typeof KINDS)[number]

interface Request {
  readonly tables?: readonly { readonly schema: string; readonly table: string }[]
  readonly kinds?: readonly Kind[]
  readonly version?: number
}

interface Accepted {
  readonly accepted: Readonly<Record<Kind, number>>
  /** The number of texts that stay proposed because a column changed. */
  readonly stale: number
  readonly version: number
}

type Drafts = Awaited<ReturnType<typeof draftsOf>>

/** Throws INVALID_REQUEST for a table without documentation, and CONFLICT if `version` is not the current version. */
export async function acceptDocumentation(
  deps: DocumentationDeps,
  call: Call,
  at: DocumentationPlace,
  request: Request,
): Promise<Accepted> {
  const catalog = await deps.catalogs.full(at.row)
  const { version, drafts } = await deps.store.db.transaction().execute(async (tx) => ({
    version: await versionNow(tx, at),
    drafts: await draftsOf(tx, at.id),
  }))
  if (request.version !== undefined && request.version !== version) throw conflict()
  const acceptance = new Acceptance(catalog, new Set(request.kinds ?? KINDS))
  const changed = await accepted(acceptance, chosen(drafts, request.tables))
  const { counts, stale, places } = acceptance
  if (changed.length === 0) {
    deps.audit.record(call, { teamId: at.teamId, datasourceId: at.id, outcome: 'ANSWERED' })
    return { accepted: counts, stale, version }
  }
  const saved = await deps.store.write(async (tx) => {
    const now = await raiseVersion(tx, at.id, version)
    const turn = inSlices()
    for (const { draft, ...name } of changed) {
      await saveDraft(tx, at.id, name, draft, call.caller.accountId)
      await turn()
    }
    const changes = { ...changesOf({ version }, { version: now }), texts: listedOf(places, places, places) }
    const what = { target: await targetOf(tx, 'documentation', at.id), changes }
    await deps.audit.change(tx, call, { teamId: at.teamId, datasourceId: at.id }, what)
    return now
  })
  return { accepted: counts, stale, version: saved }
}

/** Returns only the drafts in which a text is accepted. */
async function accepted(acceptance: Acceptance, drafts: Drafts): Promise<Drafts> {
  const turn = inSlices()
  const changed: Drafts[number][] = []
  for (const each of drafts) {
    const before = acceptance.places.length
    const draft = acceptance.of(each, each.draft)
    if (acceptance.places.length > before) changed.push({ ...each, draft })
    await turn()
  }
  return changed
}

async function versionNow(tx: Transaction<Tables>, { id }: DocumentationPlace): Promise<number> {
  const row = await tx
    .selectFrom('datasources')
    .select('documentation_version')
    .where('id', '=', id)
    .executeTakeFirstOrThrow(() => notFound())
  return row.documentation_version
}

/** Without `tables`, returns all drafts. Throws INVALID_REQUEST for a table without documentation. */
function chosen(drafts: Drafts, tables: Request['tables']): Drafts {
  if (tables === undefined) return drafts
  const named = new Set(tables.map(({ schema, table }) => tableKey(schema, table)))
  const found = drafts.filter(({ schema, table }) => named.delete(tableKey(schema, table)))
  const wrong = tables.flatMap(({ schema, table }, n) =>
    named.has(tableKey(schema, table)) ? [`tables[${n}]: there is no documentation of this table`] : [],
  )
  if (wrong.length > 0) throw invalidRequest(wrong)
  return found
}

class Acceptance {
  readonly counts: Record<Kind, number> = { summary: 0, examples: 0, statements: 0, columns: 0 }
  /** For the audit, for example `columns.name` of a table. */
  readonly places: string[] = []
  stale = 0
  readonly #tables: ReadonlyMap<string, Catalog['tables'][number]>
  readonly #others: Others
  readonly #kinds: ReadonlySet<Kind>

  constructor(catalog: Catalog | null, kinds: ReadonlySet<Kind>) {
    this.#tables = new Map(catalog?.tables.map((table) => [tableKey(table.schema, table.table), table]))
    this.#others = new Others(catalog)
    this.#kinds = kinds
  }

  of({ schema, table }: { readonly schema: string; readonly table: string }, draft: Draft): Draft {
    const place = new RestingPlace(this.#tables.get(tableKey(schema, table)) ?? null, this.#others)
    const name = pathName(schema, table)
    const take = (kind: Kind, said: Said, at: string): Said => {
      if (said.status !== 'PROPOSED' || !this.#kinds.has(kind)) return said
      if (isStale(said, place)) {
        this.stale++
        return said
      }
      this.counts[kind]++
      this.places.push(`${name} ${at}`)
      return { ...said, status: 'ACCEPTED' }
    }
    return {
      summary: draft.summary && take('summary', draft.summary, 'summary'),
      examples: draft.examples && take('examples', draft.examples, 'examples'),
      statements: draft.statements.map((said, n) => take('statements', said, `statements.${n}`)),
      columns: new Map(
        [...draft.columns].map(([column, { said, personal }]) => [
          column,
          { said: said && take('columns', said, `columns.${column}`), personal },
        ]),
      ),
    }
  }
}
