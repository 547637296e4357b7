// Limits the size of a catalog. A catalog is stored as one text and kept in memory, and the owner of the project
// decides how large it is.
import type { ColumnType } from '../captured-facts.ts'
import { unavailable } from '../session/failure.ts'
import type { Resource } from './table-resource.ts'

/** For all tables together. The fields of structs count. */
const FIELDS_MAX = 500_000
/** The limit on names, types and descriptions of all tables together. */
const TEXT_MAX = 64 * 1024 * 1024

export class Size {
  #fields = 0
  #text = 0

  /** Adds a table. Throws AppError DATASOURCE_UNAVAILABLE if the catalog is now too large. */
  add({ fields, description }: Resource): void {
    this.#text += description?.length ?? 0
    for (const field of fields) {
      this.#fields += fieldsIn(field.type)
      this.#text += field.name.length + field.text.length + (field.description?.length ?? 0)
    }
    if (this.#fields > FIELDS_MAX || this.#text > TEXT_MAX)
      throw unavailable(
        'The tables have too many columns or too long descriptions altogether: name fewer datasets in config.datasets.',
      )
  }
}

function fieldsIn({ fields }: ColumnType): number {
  return fields.reduce((sum, field) => sum + fieldsIn(field), 1)
}
