// Which tables of a catalog stand for dated shards.
import type { CatalogTable } from '../../driver.ts'

/** Whether it is listed as `<prefix>*`; no single table may be called so. */
export function isFamily({ table }: CatalogTable): boolean {
  return table.endsWith('*')
}
