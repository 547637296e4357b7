// An amount is an upper bound that may depend on sizes that only the database knows, for example the length of a stored
// array. It is a polynomial in these sizes. No coefficient is negative, so a larger size never makes an amount smaller.

/** The name of a size that only the database knows (value-size.ts). */
export type Size = string

export interface Term {
  readonly times: number
  readonly sizes: readonly Size[]
}

export interface Amount {
  readonly constant: number
  /** The key of a term is made of its sizes (keyOf). */
  readonly terms: ReadonlyMap<string, Term>
}

/** A number above every limit. Sums and products stop at it, so they stay finite. */
export const HUGE = 1e100
/** An amount with more terms becomes HUGE. */
const TERMS_MAX = 512
const PAIRS_MAX = 2_500
export const DEGREE_MAX = 6

const NO_TERMS: ReadonlyMap<string, Term> = new Map()

export const NONE: Amount = { constant: 0, terms: NO_TERMS }

export function constant(n: number): Amount {
  return { constant: bounded(n), terms: NO_TERMS }
}

export function sizeOf(size: Size, times = 1): Amount {
  return { constant: 0, terms: new Map([[size, { times, sizes: [size] }]]) }
}

export function isConstant({ terms }: Amount): boolean {
  return terms.size === 0
}

function bounded(n: number): number {
  return n < HUGE ? n : HUGE
}

/** Returns the sizes in an amount. A size may occur several times. */
export function sizesOf({ terms }: Amount): readonly Size[] {
  return [...terms.values()].flatMap(({ sizes }) => sizes)
}

/**
 * Splits an amount in two. `of` has the terms with a size that `isOf` accepts. `rest` has all other terms and the
 * constant.
 */
export function split(amount: Amount, isOf: (size: Size) => boolean): readonly [of: Amount, rest: Amount] {
  const [of, rest] = [new Map<string, Term>(), new Map<string, Term>()]
  for (const [key, term] of amount.terms) (term.sizes.some(isOf) ? of : rest).set(key, term)
  return [
    { constant: 0, terms: of },
    { constant: amount.constant, terms: rest },
  ]
}

export function plus(...amounts: readonly (Amount | number)[]): Amount {
  let total = 0
  let terms: Map<string, Term> | null = null
  for (const amount of amounts) {
    if (typeof amount === 'number') {
      total += amount
      continue
    }
    total += amount.constant
    if (amount.terms.size === 0) continue
    terms ??= new Map()
    for (const [key, term] of amount.terms) addTerm(terms, key, term)
  }
  return terms === null ? constant(total) : made(total, terms)
}

function addTerm(terms: Map<string, Term>, key: string, { times, sizes }: Term): void {
  if (times === 0) return
  terms.set(key, { times: bounded((terms.get(key)?.times ?? 0) + times), sizes })
}

function made(total: number, terms: ReadonlyMap<string, Term>): Amount {
  return terms.size > TERMS_MAX ? constant(HUGE) : { constant: bounded(total), terms }
}

export function scaled(amount: Amount, n: number): Amount {
  if (n === 1) return amount
  if (n <= 0) return NONE
  if (isConstant(amount)) return constant(amount.constant * n)
  const terms = [...amount.terms].map(([key, { times, sizes }]): [string, Term] => [
    key,
    { times: bounded(times * n), sizes },
  ])
  return { constant: bounded(amount.constant * n), terms: new Map(terms) }
}

export function product(one: Amount, other: Amount): Amount {
  if (isConstant(one)) return scaled(other, one.constant)
  if (isConstant(other)) return scaled(one, other.constant)
  if (one.terms.size * other.terms.size > PAIRS_MAX) return constant(HUGE)
  const terms = new Map<string, Term>()
  for (const a of each(one)) {
    for (const b of each(other)) {
      const sizes = [...a.sizes, ...b.sizes].sort()
      if (sizes.length > DEGREE_MAX) return constant(HUGE)
      if (sizes.length > 0) addTerm(terms, keyOf(sizes), { times: bounded(a.times * b.times), sizes })
    }
  }
  return made(one.constant * other.constant, terms)
}

/** The separator cannot occur in the name of a field. */
function keyOf(sizes: readonly Size[]): string {
  return sizes.join('\0')
}

function each({ constant: own, terms }: Amount): readonly Term[] {
  return own === 0 ? [...terms.values()] : [{ times: own, sizes: [] }, ...terms.values()]
}

/** Returns an amount that is at least as large as each of these amounts. */
export function most(...amounts: readonly Amount[]): Amount {
  const [first = NONE, ...others] = amounts
  if (others.length === 0) return first
  if (amounts.every(isConstant)) return constant(Math.max(...amounts.map((amount) => amount.constant)))
  const terms = new Map(first.terms)
  let total = first.constant
  for (const amount of others) {
    total = Math.max(total, amount.constant)
    for (const [key, term] of amount.terms) {
      const known = terms.get(key)
      if (known === undefined || known.times < term.times) terms.set(key, term)
    }
  }
  return made(total, terms)
}

/**
 * Replaces some sizes by amounts. `by` returns null for a size that stays. `isFirst` is true for the first occurrence
 * of a size in a product.
 */
export function replaced(amount: Amount, by: (size: Size, isFirst: boolean) => Amount | null): Amount {
  if (isConstant(amount)) return amount
  const parts: (Amount | number)[] = [amount.constant]
  for (const { times, sizes } of amount.terms.values())
    parts.push(
      sizes.reduce<Amount>(
        (all, size, n) => product(all, by(size, sizes.indexOf(size) === n) ?? sizeOf(size)),
        constant(times),
      ),
    )
  return plus(...parts)
}

export function withSize(amount: Amount, size: Size, by: Amount): Amount {
  return replaced(amount, (each) => (each === size ? by : null))
}

/**
 * Adds up an amount over all elements of an array. `own` is the size of one element, and `bytes` the size of all
 * elements together. So the sum of a power of `own` is at most `bytes` times the next lower power of `longest`. A term
 * without `own` counts `items` times.
 */
export function overAll(
  amount: Amount,
  own: Size,
  { bytes, items, longest = bytes }: { readonly bytes: Amount; readonly items: Amount; readonly longest?: Amount },
): Amount {
  const [of, rest] = split(amount, (size) => size === own)
  const whole = replaced(of, (size, isFirst) => (size !== own ? null : isFirst ? bytes : longest))
  return plus(product(rest, items), whole)
}
