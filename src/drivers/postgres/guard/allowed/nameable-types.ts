// Decides which user-defined types a query may name: types of exposed columns and of trusted extensions. A cast to
// another type could reveal the labels or fields of a hidden column's type, or that a hidden table exists.
import type { TypeName } from '../../captured-facts.ts'
import { tableTyped } from '../../quote.ts'
import type { Exposed } from '../exposed.ts'

const shown = new WeakMap<Exposed, ReadonlySet<string>>()

/** Returns whether an exposed column or a trusted extension has this type. */
export function isShown(exposed: Exposed, type: TypeName): boolean {
  const extension = exposed.type(type.schema, type.name)?.extension
  if (extension && exposed.extension(extension)?.trusted === true) return true
  const known = shown.get(exposed) ?? collect(exposed)
  return known.has(keyOf(type))
}

/** Returns the user-defined types of exposed columns, without array types, quoted as a caller must type them. */
export function shownTypes(exposed: Exposed): string[] {
  const known = shown.get(exposed) ?? collect(exposed)
  const named = exposed.capture.types.filter(
    (type) => known.has(keyOf(type)) && type.refused === null && type.kind !== 'array',
  )
  return named.map((type) => tableTyped(type, exposed.capture.searchPath))
}

function collect(exposed: Exposed): ReadonlySet<string> {
  const found = new Set<string>()
  const add = (type: TypeName): void => {
    const key = keyOf(type)
    const captured = exposed.type(type.schema, type.name)
    if (!captured || found.has(key)) return
    found.add(key)
    if (captured.of) add(captured.of)
    for (const attribute of captured.attributes) add(attribute.type)
  }
  for (const table of exposed.tables) for (const column of table.columns) add(column.type)
  // An array type may be named if its element type may: its name (_mood) reveals no more.
  for (const type of exposed.capture.types) {
    if (type.kind === 'array' && type.of && found.has(keyOf(type.of))) found.add(keyOf(type))
  }
  shown.set(exposed, found)
  return found
}

function keyOf({ schema, name }: TypeName): string {
  return `${schema}\0${name}`
}
