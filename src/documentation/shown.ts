// What of the published documentation a description may carry: nothing that rests on a hidden column, and nothing that
// names one. Asked anew for each exposure, so that a narrower one shows less from the next request on. Pure.
import { z } from 'zod'
import type { CatalogTable } from '../drivers/driver.ts'
import type { RestingPlace } from './columns.ts'
import type { HiddenNames } from './hidden-names.ts'

const PublishedText = z.object({ text: z.string(), restsOn: z.array(z.string()) })
type PublishedText = z.infer<typeof PublishedText>

const PublishedTable = z.object({
  schema: z.string(),
  table: z.string(),
  summary: PublishedText.nullable(),
  examples: PublishedText.nullable(),
  statements: z.array(PublishedText),
  columns: z.record(z.string(), PublishedText),
})
export type PublishedTable = z.infer<typeof PublishedTable>

/** Reads what the store keeps. Throws a ZodError for a damaged store. */
export function readPublished(json: string): readonly PublishedTable[] {
  return z.array(PublishedTable).parse(JSON.parse(json))
}

/** The texts of one table that may be seen. */
export interface ShownDocumentation {
  readonly summary: string | null
  readonly statements: readonly string[]
  readonly examples: string | null
  readonly columns: ReadonlyMap<string, string>
}

/** What decides over all texts of one table. */
export interface Sight {
  /** The table cut to the exposure. */
  readonly exposed: CatalogTable
  /** The exposed catalog. */
  readonly visible: RestingPlace
  /** Everything introspected. */
  readonly known: RestingPlace
  readonly hidden: HiddenNames
}

export function shownDocumentation(published: PublishedTable, sight: Sight): ShownDocumentation {
  const names = new Set(sight.exposed.columns.map((column) => column.name))
  const shown = (said: PublishedText | null): string | null => (said !== null && maySee(said, sight) ? said.text : null)
  const columns = new Map<string, string>()
  for (const [name, said] of Object.entries(published.columns)) {
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

/** Every column it rests on is exposed, and it names nothing that is not. */
export function maySee(
  said: { readonly text: string; readonly restsOn: readonly string[] },
  { visible, known, hidden }: Sight,
): boolean {
  const rests = said.restsOn.every((name) =>
    known.isOwn(name) ? visible.isOwn(name) : visible.typeOf(name) !== undefined,
  )
  return rests && hidden.in(said.text).length === 0
}
