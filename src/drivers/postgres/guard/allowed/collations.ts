// Checks the names of collations. A query may name PostgreSQL's own collations, and those that initdb imports from the
// operating system and from ICU, all in pg_catalog. Other names are never sent to the server, so no error can reveal
// whether such a collation exists.
import { didYouMean, nearest } from '../../../nearest.ts'
import { word, words, type Node, type Struct } from './allowed-nodes.ts'
import { Refusal } from '../refusal.ts'

/** The first major version that has each of PostgreSQL's own collations. */
const OWN: ReadonlyMap<string, number> = new Map([
  ...['default', 'C', 'C.utf8', 'C.UTF-8', 'POSIX', 'ucs_basic'].map((name) => [name, 14] as const),
  ['unicode', 16],
  ['pg_c_utf8', 17],
  ['pg_unicode_fast', 18],
])

/** A language and its variants, for example de_DE, en_US.utf8, de_AT@euro, de-DE, und-x-icu or sr-Latn-RS-x-icu. */
const OF_A_LANGUAGE = /^[a-z]{2,3}(?:[-_][A-Za-z0-9]{1,8}){0,6}(?:\.[A-Za-z0-9-]{1,16})?(?:@[a-z]{1,16})?$/

/** Matches the ICU collations that may be named. */
const OF_ICU = /-x-icu$|^unicode$/

/** Returns whether one of the names is an ICU collation. */
export function namesIcu(names: Iterable<string>): boolean {
  for (const name of names) if (OF_ICU.test(name)) return true
  return false
}

/** Returns whether a query text may contain COLLATE. */
export function mayCollate(text: string): boolean {
  return /collate/i.test(text)
}

/** Returns the name as it is printed. Throws Refusal, with the same message for forbidden and for unknown names. */
export function collationName({ collname, location }: Struct<'CollateClause'>, major: number): Node[] {
  const names = words(collname)
  const name = names.at(-1) ?? ''
  const written = names.join('.')
  const since = OWN.get(name) ?? (OF_A_LANGUAGE.test(name) ? 14 : undefined)
  const isOwn = names.length === 1 || (names.length === 2 && names[0] === 'pg_catalog')
  if (!isOwn || since === undefined) {
    const near = didYouMean(nearest(name, OWN.keys()).map((each) => `"${each}"`))
    const hint = `Use one of PostgreSQL's own collations without a schema: for example "C", "en_US" or "en-x-icu".`
    const why = `collation ${written} does not exist or may not be named`
    throw new Refusal('operator', written, why, near === '' ? hint : `${near} ${hint}`, location)
  }
  if (since > major) {
    const why = `collation ${name} needs PostgreSQL ${since}, this server is ${major}`
    throw new Refusal('operator', name, why, `${why}.`, location)
  }
  return [word('pg_catalog'), word(name)]
}
