// Decides which published texts a description may show. A text is hidden if it depends on a hidden column or names a
// hidden object. This is decided for each request, so hiding a column hides its texts at once.
import { z } from 'zod'
import type { Catalog, CatalogTable } from '../drivers/driver.ts'
import { byName, jsonOf } from '../contract/name-keyed-objects.ts'
import { tableKey } from '../drivers/table-key.ts'
import { inSlices } from '../event-loop-slices.ts'
import { Others, RestingPlace } from './text-dependencies.ts'
import { Provenance } from './stored-draft.ts'
import { HiddenNames } from './hidden-names.ts'
import { wordsOf } from './split-words.ts'

const PublishedText = z.object({ ...Provenance, origin: Provenance.origin.default('GENERATED') })
type PublishedText = z.infer<typeof PublishedText>

const PublishedTable = z.object({
  schema: z.string(),
  table: z.string(),
  summary: PublishedText.nullable(),
  examples: PublishedText.nullable(),
  statements: z.array(PublishedText),
  columns: byName(PublishedText),
})
export type PublishedTable = z.infer<typeof PublishedTable>

/** Yields to the event loop, because a publication may have thousands of tables. */
export async function readPublished(json: string): Promise<readonly PublishedTable[]> {
  const turn = inSlices()
  const tables: PublishedTable[] = []
  for (const each of z.array(z.unknown()).parse(JSON.parse(json))) {
    await turn()
    tables.push(PublishedTable.parse(each))
  }
  return tables
}

export async function writePublished(tables: Iterable<PublishedTable>): Promise<string> {
  const turn = inSlices()
  const written: string[] = []
  for (const each of tables) {
    await turn()
    written.push(jsonOf(each))
  }
  return `[${written.join(',')}]`
}

export function withoutPublished(table: PublishedTable, isRemoved: (said: PublishedText) => boolean): PublishedTable {
  const kept = (said: PublishedText | null) => (said !== null && isRemoved(said) ? null : said)
  return {
    ...table,
    summary: kept(table.summary),
    examples: kept(table.examples),
    statements: table.statements.filter((said) => !isRemoved(said)),
    columns: new Map([...table.columns].filter(([, said]) => !isRemoved(said))),
  }
}

export interface VisibleTexts {
  readonly summary: string | null
  readonly statements: readonly string[]
  readonly examples: string | null
  readonly columns: ReadonlyMap<string, string>
}

/** The words of each text, by the object that contains the text. */
export type Words = Map<object, readonly string[]>

export class Visibility {
  readonly #exposed: ReadonlyMap<string, CatalogTable>
  readonly #full: ReadonlyMap<string, CatalogTable>
  readonly #visible: Others
  readonly #known: Others
  readonly #hidden: HiddenNames
  readonly #words: Words

  /** `words` caches the words of texts, so that several exposures need not split the same text again. */
  constructor(exposed: Pick<Catalog, 'tables'>, full: Pick<Catalog, 'tables'>, words: Words = new Map()) {
    this.#words = words
    const keyed = (tables: readonly CatalogTable[]) =>
      new Map(tables.map((each) => [tableKey(each.schema, each.table), each]))
    this.#exposed = keyed(exposed.tables)
    this.#full = keyed(full.tables)
    this.#visible = new Others(exposed)
    this.#known = new Others(full)
    this.#hidden = new HiddenNames(exposed, full)
  }

  /** Returns null if no column of the table is exposed. Then no text about the table may be shown. */
  of(at: { readonly schema: string; readonly table: string }): VisibleColumns | null {
    const key = tableKey(at.schema, at.table)
    const exposed = this.#exposed.get(key)
    if (exposed === undefined) return null
    const visible = new RestingPlace(exposed, this.#visible)
    const known = new RestingPlace(this.#full.get(key) ?? exposed, this.#known)
    return {
      exposed,
      known,
      /** The text must depend only on exposed columns, and must name no hidden object. */
      maySee: (said) => {
        const rests = said.restsOn.every((name) =>
          known.isOwn(name)
            ? visible.isOwn(name)
            : visible.meanings(name) > 0 && visible.meanings(name) === known.meanings(name),
        )
        return rests && (this.#hidden.isEmpty || this.#hidden.in(said.text, at, this.#wordsOf(said)).length === 0)
      },
    }
  }

  #wordsOf(said: { readonly text: string }): readonly string[] {
    const words = this.#words.get(said) ?? wordsOf(said.text)
    this.#words.set(said, words)
    return words
  }
}

export interface VisibleColumns {
  readonly exposed: CatalogTable
  readonly known: RestingPlace
  maySee(said: { readonly text: string; readonly restsOn: readonly string[] }): boolean
}

export function visibleTexts(published: PublishedTable, sight: VisibleColumns): VisibleTexts {
  const names = new Set(sight.exposed.columns.map((column) => column.name))
  const shown = (said: PublishedText | null): string | null => (said !== null && sight.maySee(said) ? said.text : null)
  const columns = new Map<string, string>()
  for (const [name, said] of published.columns) {
    const text = names.has(name) ? shown(said) : null
    if (text !== null) columns.set(name, text)
  }
  return {
    summary: shown(published.summary),
    statements: published.statements.map(shown).filter((text) => text !== null),
    examples: shown(published.examples),
    columns,
  }
}
