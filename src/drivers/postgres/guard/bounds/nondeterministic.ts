// Limits searches of texts with a nondeterministic collation. From version 18, PostgreSQL compares each part of such a
// text with the string to find, and checks for no cancel: strpos() of a text of 10,000 bytes took 3.5 s.
import { isNode, words, type Node } from '../allowed/allowed-nodes.ts'
import type { Exposed } from '../exposed.ts'
import { operator, whole } from '../node-builders.ts'
import { literalText, octets, steadily, unlessText } from './argument-bounds.ts'
import { remembered } from './printed-size.ts'

/** The first version that searches such texts. Older ones fail. */
const SINCE = 18
/** The limit in bytes on a searched text. One search of a text of this length takes 0.05 to 0.15 s. */
const SEARCHED_MAX = 1_500
/** A byte of the string to find counts as this many bytes, unless the string is short. */
const SOUGHT_COST = 8
/** A constant of at most this many bytes counts as no bytes. */
const FREE_BYTES = 64
const SEARCHES = /^(?:strpos|position|replace|split_part|string_to_array|string_to_table)$/

/** References to columns that may have a nondeterministic collation. */
const LOOSE = new WeakSet<object>()

/** Records that a reference may have a nondeterministic collation. Returns the reference. */
export function withLoose(reference: Node, isLoose: boolean): Node {
  if (isLoose) LOOSE.add(reference)
  return reference
}

/**
 * Returns whether a confined expression may have a nondeterministic collation. A query cannot name such a collation, but
 * a domain or a field of a composite type may have one.
 */
export const mayBeLoose = remembered((part) => {
  if (LOOSE.has(part)) return true
  if (!isNode(part)) return undefined
  if (part.CollateClause) return false
  if (part.TypeCast && words(part.TypeCast.typeName?.names)[0] !== 'pg_catalog') return true
  return part.A_Indirection?.indirection?.some((each) => each.String) === true ? true : undefined
})

/** Returns whether a column of a sub-select may have a nondeterministic collation. Unknown outputs may have one. */
export function anyLoose(made: readonly Node[] | undefined): boolean {
  return made === undefined || made.some((node) => mayBeLoose(node) || Object.keys(node).length === 0)
}

/** Returns the arguments of a function, with a limit on a text with a nondeterministic collation. Throws Refusal. */
export function boundedLooseSearch(
  { comparesByIcu, major }: Exposed,
  name: string,
  args: readonly Node[],
  at: number | undefined,
): readonly Node[] {
  const [text, sought, ...rest] = args
  if (major < SINCE || !comparesByIcu || !SEARCHES.test(name) || !text || !sought) return args
  if (!mayBeLoose(text) && !mayBeLoose(sought)) return args
  const isShort = (literalText(sought)?.length ?? Infinity) <= FREE_BYTES
  const both = operator('+', octets(text), operator('*', octets(sought), whole(SOUGHT_COST)))
  const size = steadily(isShort ? octets(text) : both, [text, sought], name, at)
  return [unlessText({ what: 'nondeterministic', size, most: SEARCHED_MAX }, text), sought, ...rest]
}
