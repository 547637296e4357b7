// Guesses whether a column contains personal data, for the person who chooses the exposure. If a person marked the
// column, the mark decides. Otherwise the stored profile decides, or the name and type. Reads no rows or values.
import type { CatalogColumn, ValueKind } from '../drivers/driver.ts'
import { isAboutPeople, PEOPLE_NAMES, readName, type NameReading } from './personal-names.ts'
import { PERSONAL_LOOKS } from './privacy.ts'
import { LOOKS } from './column-signals.ts'
import type { KeptColumn } from './stored-profiles.ts'

export interface PersonalGuess {
  readonly guess: boolean
  readonly why: string | null
}

export interface KnownOfColumn {
  readonly mark: boolean | null
  /** Undefined if the column was not profiled with its current type. */
  readonly kept: Pick<KeptColumn, 'personal' | 'look'> | undefined
}

export const NOT_PERSONAL: PersonalGuess = { guess: false, why: null }

/** `byName` is the guess from the column's name. */
export function guessPersonal(byName: PersonalGuess, { mark, kept }: KnownOfColumn): PersonalGuess {
  if (mark !== null) return mark ? MARKED : CLEARED
  if (kept?.personal !== true) return byName
  const look = kept.look !== null && PERSONAL_LOOKS.has(kept.look) ? LOOKS[kept.look] : undefined
  if (look !== undefined) return { guess: true, why: `The sampled values look like ${look}.` }
  return byName.guess ? byName : { guess: true, why: 'The profile found values that look personal.' }
}

const MARKED: PersonalGuess = { guess: true, why: 'A person marked the column as personal.' }
const CLEARED: PersonalGuess = { guess: false, why: 'A person marked the column as not personal.' }

/** Depends only on the name and the type, so the result can be cached for all tables. */
export function readColumnName(column: Pick<CatalogColumn, 'name' | 'type' | 'labels'>): NameReading {
  return readName(column.name, kindOf(column))
}

export function guessByName(table: string, { what, isName }: NameReading): PersonalGuess {
  const found = what ?? (isName && isAboutPeople(table) ? PEOPLE_NAMES : null)
  return found === null ? NOT_PERSONAL : { guess: true, why: `The name suggests ${found}.` }
}

/** The order matters: an `interval` is a time and not an `int`. */
const KINDS: readonly (readonly [RegExp, ValueKind])[] = [
  [/^bool/, 'boolean'],
  [/^(?:date|time|interval)/, 'time'],
  [/^(?:u?int|small|big|serial|numeric|decimal|real|double|float|money|long|number)/, 'number'],
  [/^(?:text|string|char|character|varchar|citext|name)/, 'text'],
]

/** Returns the kind of values of a column. Knows the names of types in all kinds of databases. */
function kindOf({ type, labels }: Pick<CatalogColumn, 'type' | 'labels'>): ValueKind {
  if (labels !== undefined) return 'label'
  const lower = type.toLowerCase()
  return KINDS.find(([names]) => names.test(lower))?.[1] ?? 'other'
}
