// Recognizes the catalog tables that stand for dated shards.
import type { CatalogTable } from '../../driver.ts'

/** Whether the table is listed as `<prefix>*`. No real table can have such a name. */
export function isFamily({ table }: CatalogTable): boolean {
  return table.endsWith('*')
}
