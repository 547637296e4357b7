// The exposed columns that a text names, so that what somebody wrote rests on what it speaks of, whether they said so or
// not. It guesses wide: a text that rests on one column more is hidden sooner, never later.
import type { Catalog, CatalogTable } from '../drivers/driver.ts'
import { fullName } from './columns.ts'
import { runOf, runs, wordsOf } from './words.ts'

/** Made once a catalog, however many texts are read. */
export class Naming {
  readonly #tables = new Map<string, CatalogTable[]>()

  constructor(catalog: Pick<Catalog, 'tables'>) {
    for (const table of catalog.tables) {
      const run = runOf(table.table)
      this.#tables.set(run, [...(this.#tables.get(run) ?? []), table])
    }
  }

  /** As a text about `own` rests on them; a table that is named without any column of it stands there by its first. */
  in(text: string, own: CatalogTable): readonly string[] {
    const said = new Set<string>()
    const others = new Set<CatalogTable>()
    for (const [run] of runs(wordsOf(text))) {
      said.add(run)
      for (const table of this.#tables.get(run) ?? []) {
        if (table.schema !== own.schema || table.table !== own.table) others.add(table)
      }
    }
    const isSaid = ({ name }: { readonly name: string }) => said.has(runOf(name))
    return [
      ...own.columns.filter(isSaid).map((column) => column.name),
      ...[...others].flatMap((table) => {
        const named = table.columns.filter(isSaid)
        return (named.length > 0 ? named : table.columns.slice(0, 1)).map(({ name }) =>
          fullName({ schema: table.schema, table: table.table, column: name }),
        )
      }),
    ]
  }
}
