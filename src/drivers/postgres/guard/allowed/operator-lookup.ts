// Decides how operators are printed. PostgreSQL's own become OPERATOR(pg_catalog.x) where the grammar allows it. An
// operator with the schema of an extension keeps the schema, and must belong to the extension (pg_depend). If an
// extension in a trusted schema has an operator of the same name, an operator without a schema is printed without one.
import { didYouMean } from '../../../nearest.ts'
import type { CapturedExtension } from '../../captured-facts.ts'
import { typed } from '../../quote.ts'
import { word, type Node } from './allowed-nodes.ts'
import { refusedOperator, type Refusal } from '../refusal.ts'
import type { Walk } from '../walk/scope.ts'
import type { SqlType, Typed } from '../walk/from-items.ts'
import { extensionOf } from './type-names.ts'
import { OPERATOR_ADVICE, OWN_OPERATORS } from './types-and-extensions.ts'

const SYMBOL = /^[-+*/<>=~!@#%^&|`?]+$/
/**
 * Operators of extensions that are always refused. `row #= hstore` calls the input functions of the fields' types,
 * which may read hidden tables: to read a geometry from a text, PostGIS reads spatial_ref_sys.
 */
const REFUSED: ReadonlySet<string> = new Set(['#='])
const LIKE: ReadonlySet<string> = new Set(['~~', '!~~', '~~*', '!~~*'])

/** Returns whether the operator is LIKE, ILIKE or a negation of them. */
export function isLikeOperator(names: readonly string[]): boolean {
  return LIKE.has(names.at(-1) ?? '')
}

/** Returns the types that an operator compares: for a row (a, b), those of its columns. */
export function compared(value: Typed | undefined): readonly (SqlType | null)[] {
  if (value?.node.RowExpr && value.type?.kind === 'row') return value.type.columns.map((column) => column.type)
  return [value?.type ?? null]
}

/** Returns the operator's name as it is printed. `types` are those of its operands. Throws Refusal. */
export function operatorName(
  walk: Walk,
  names: readonly string[],
  types: readonly (SqlType | null)[],
  at: number | undefined,
): Node[] {
  const symbol = names.at(-1) ?? ''
  const isSymbol = SYMBOL.test(symbol) && !symbol.includes('--') && !symbol.includes('/*')
  if (!isSymbol || names.length > 2 || REFUSED.has(symbol)) throw unknownOperator(walk, names, at)
  const [schema] = names
  if (names.length === 2 && schema !== 'pg_catalog') {
    const { extensions } = walk.exposed.capture
    const owner = extensions.find((each) => each.schema === schema && hasOwn(each, symbol))
    if (!owner) throw unknownOperator(walk, names, at)
    return [word(owner.schema), word(symbol)]
  }
  checkComparison(walk, symbol, types, at)
  const mayBeExtensions = names.length === 1 && walk.exposed.pathOperators.has(symbol)
  if (!mayBeExtensions && !OWN_OPERATORS.has(symbol)) throw unknownOperator(walk, names, at)
  return mayBeExtensions ? [word(symbol)] : [word('pg_catalog'), word(symbol)]
}

/** Returns whether this trusted extension has the operator, and the server could not call a user's operator instead. */
function hasOwn(extension: CapturedExtension, symbol: string): boolean {
  return extension.trusted && extension.operators.includes(symbol) && !extension.shadowed.includes(symbol)
}

/** Returns the same message for a forbidden and for an unknown operator. The hint names allowed operators only. */
function unknownOperator(walk: Walk, names: readonly string[], at: number | undefined): Refusal {
  const symbol = names.at(-1) ?? ''
  const owners = walk.exposed.capture.extensions.filter((each) => hasOwn(each, symbol) && !REFUSED.has(symbol))
  const here = owners.map(({ schema }) => `OPERATOR(${typed(schema)}.${symbol})`)
  const near = didYouMean(here.length > 0 ? here : alike(symbol))
  const advice = here.length > 0 ? undefined : OPERATOR_ADVICE.get(symbol)
  const hint = advice ?? (near === '' ? OPERATORS_HINT : `${near} ${OPERATORS_HINT}`)
  return refusedOperator(names.join('.'), hint, at)
}

/**
 * Returns up to three operators that are the beginning of the symbol, or begin with it. Those of the nearest length
 * come first. Symbols are too short to compare by edit distance.
 */
function alike(symbol: string): string[] {
  const near = [...OWN_OPERATORS].filter((own) => own.length > 1 && (own.startsWith(symbol) || symbol.startsWith(own)))
  const distance = (own: string): number => Math.abs(own.length - symbol.length)
  return near.toSorted((a, b) => distance(a) - distance(b)).slice(0, 3)
}

const OPERATORS_HINT =
  "Use PostgreSQL's own operators, or write an operator of a known extension as OPERATOR(schema.symbol)."

/**
 * Refuses an operator on a value of an extension's type if the extension's schema cannot be on the search_path. The
 * server would silently compare the values as text (for example citext).
 */
export function checkComparison(
  walk: Walk,
  symbol: string,
  types: readonly (SqlType | null)[],
  at: number | undefined,
): void {
  for (const type of types) {
    const name = extensionOf(walk.exposed, type)
    const extension = name === null ? undefined : walk.exposed.extension(name)
    if (!extension || walk.exposed.capture.trustedSchemas.includes(extension.schema)) continue
    if (!extension.operators.includes(symbol)) continue
    const hint = `Write it as OPERATOR(${typed(extension.schema)}.${symbol}), or ask an administrator to move the extension ${extension.name} into its own schema.`
    const why = `operator ${symbol} on a value of the extension ${extension.name} would not be the extension's operator`
    throw refusedOperator(symbol, hint, at, why)
  }
}
