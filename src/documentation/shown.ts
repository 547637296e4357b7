// What of the published documentation a description may carry: nothing that rests on a hidden column, and nothing that
// names one. Asked anew for each exposure, so that a narrower one shows less from the next request on. Pure.
import { z } from 'zod'
import type { CatalogTable } from '../drivers/driver.ts'

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

/** `exposed` is the table cut to the exposure, `full` as introspection knows it. */
export function shownDocumentation(
  published: PublishedTable,
  exposed: CatalogTable,
  full: CatalogTable,
): ShownDocumentation {
  const hidden = hiddenNames(exposed, full)
  const visible = new Set(exposed.columns.map((column) => column.name))
  const shown = (said: PublishedText | null): string | null =>
    said !== null && restsOnVisible(said.restsOn, visible) && !names(said.text, hidden) ? said.text : null
  const columns = new Map<string, string>()
  for (const [name, said] of Object.entries(published.columns)) {
    const text = visible.has(name) ? shown(said) : null
    if (text !== null) columns.set(name, text)
  }
  return {
    summary: shown(published.summary),
    statements: published.statements.map(shown).filter((text) => text !== null),
    examples: shown(published.examples),
    columns,
  }
}

/** The columns of a table that are not exposed. */
export function hiddenNames(exposed: CatalogTable | undefined, full: CatalogTable): readonly string[] {
  const visible = new Set(exposed?.columns.map((column) => column.name))
  return full.columns.map((column) => column.name).filter((name) => !visible.has(name))
}

/** Whether a text holds one of the names as a word of its own, in whatever case. */
export function names(text: string, candidates: readonly string[]): boolean {
  return namedIn(text, candidates).length > 0
}

/** Those of the names that a text holds. Shorter than three letters, a name is no word to look for. */
export function namedIn(text: string, candidates: readonly string[]): readonly string[] {
  const words = new Set(text.toLowerCase().match(WORD))
  const flat = ` ${[...text.toLowerCase().matchAll(WORD)].join(' ')} `
  return candidates.filter((name) => {
    const parts: readonly string[] = name.toLowerCase().match(WORD) ?? []
    if (parts.join('').length < 3) return false
    return parts.length === 1 ? words.has(parts[0] ?? '') : flat.includes(` ${parts.join(' ')} `)
  })
}

/** Letters, digits and the underscores between them. */
const WORD = /[\p{L}\p{N}_]+/gu

function restsOnVisible(restsOn: readonly string[], visible: ReadonlySet<string>): boolean {
  return restsOn.every((name) => visible.has(name))
}
