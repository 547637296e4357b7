// Finds the operator that a symbol means. PostgreSQL's own operators are printed as OPERATOR(pg_catalog.x) where the grammar
// allows that, an extension's operators where pg_depend says that they belong to the extension.
import { didYouMean } from '../../nearest.ts'
import type { CapturedExtension } from '../capture.ts'
import { typed } from '../quote.ts'
import { word, type Node } from './allowed-nodes.ts'
import { refusedOperator, type Refusal } from './refusal.ts'
import type { SqlType, Typed, Walk } from './scope.ts'
import { extensionOf } from './type-names.ts'
import { OPERATOR_ADVICE, OWN_OPERATORS } from './types-and-extensions.ts'

const SYMBOL = /^[-+*/<>=~!@#%^&|`?]+$/
const LIKE: ReadonlySet<string> = new Set(['~~', '!~~', '~~*', '!~~*'])

/** Whether LIKE or one of its kin is meant. */
export function isLikeOperator(names: readonly string[]): boolean {
  return LIKE.has(names.at(-1) ?? '')
}

/** The types that an operator meets: of (a, b) each of its own, of anything else the value's. */
export function compared(value: Typed | undefined): readonly (SqlType | null)[] {
  if (value?.node.RowExpr && value.type?.kind === 'row') return value.type.columns.map((column) => column.type)
  return [value?.type ?? null]
}

/** The name to print for an operator over operands of these types. Throws Refusal. */
export function operatorName(
  walk: Walk,
  names: readonly string[],
  types: readonly (SqlType | null)[],
  at: number | undefined,
): Node[] {
  const symbol = names.at(-1) ?? ''
  const isSymbol = SYMBOL.test(symbol) && !symbol.includes('--') && !symbol.includes('/*')
  if (!isSymbol || names.length > 2) throw unknownOperator(walk, names, at)
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

/** One that somebody's own operator shadows could be answered by that. */
function hasOwn(extension: CapturedExtension, symbol: string): boolean {
  return extension.trusted && extension.operators.includes(symbol) && !extension.shadowed.includes(symbol)
}

/** The same words for a hidden operator and none; the hint names only what may be used. */
function unknownOperator(walk: Walk, names: readonly string[], at: number | undefined): Refusal {
  const symbol = names.at(-1) ?? ''
  const owners = walk.exposed.capture.extensions.filter((each) => hasOwn(each, symbol))
  const here = owners.map(({ schema }) => `OPERATOR(${typed(schema)}.${symbol})`)
  const near = didYouMean(here.length > 0 ? here : alike(symbol))
  const advice = here.length > 0 ? undefined : OPERATOR_ADVICE.get(symbol)
  const hint = advice ?? (near === '' ? OPERATORS_HINT : `${near} ${OPERATORS_HINT}`)
  return refusedOperator(names.join('.'), hint, at)
}

/** Operators that begin as this one does, the most alike first. A distance of letters says nothing of signs. */
function alike(symbol: string): string[] {
  const near = [...OWN_OPERATORS].filter((own) => own.length > 1 && (own.startsWith(symbol) || symbol.startsWith(own)))
  const distance = (own: string): number => Math.abs(own.length - symbol.length)
  return near.toSorted((a, b) => distance(a) - distance(b)).slice(0, 3)
}

const OPERATORS_HINT = "Use PostgreSQL's own operators, or a known extension's as OPERATOR(schema.symbol)."

/**
 * Refuses an operator over a column of an extension's type, where the extension lives in a schema that cannot be on the
 * path: the server would not find the extension's operator, and silently compare as text (citext, say).
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
    const hint = `Write it as OPERATOR(${typed(extension.schema)}.${symbol}), or let the extension ${extension.name} be moved into a schema of its own.`
    const why = `operator ${symbol} on a value of the extension ${extension.name} would not be that extension's`
    throw refusedOperator(symbol, hint, at, why)
  }
}
