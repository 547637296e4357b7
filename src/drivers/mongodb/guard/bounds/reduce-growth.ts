// Bounds the value of a $reduce. The body was judged once, with a $$value of unknown size. If this size occurs in the
// result, it shows how much a turn (one iteration) adds, and whether turns multiply the value.
import {
  isConstant,
  most,
  overAll,
  plus,
  replaced,
  scaled,
  sizeOf,
  sizesOf,
  split,
  withSize,
  type Amount,
  type Size,
  type Term,
} from './amount.ts'
import {
  anything,
  atRest,
  bytesAt,
  ELEMENT_LEAST,
  largest,
  lengthAt,
  measureOf,
  object,
  SMALL,
  usualOf,
  type Extent,
} from './value-size.ts'
import { refusedLimit } from '../refusals/refusal.ts'

export interface Turns {
  /** `own` is the size of an element of the input. */
  readonly input: Extent
  readonly own: Size
  readonly initial: Extent
  /** The result of one turn. In it, $$value is at the place `value`. */
  readonly turn: Extent
  readonly value: string
  /** The name of $$value in the query. */
  readonly name: string
}

/** If a turn may multiply the value, there may be at most this many turns. */
const TURNS_MULTIPLIED = 16

/**
 * Returns the extent of the result, which $$value does not exceed in any turn. Throws Refusal if turns multiply the
 * value.
 */
export function afterTurns(turns: Turns): Extent {
  const { initial, turn, input, own } = turns
  if (!isOfValue(turn.bytes, turns)) return scrubbed(largest([initial, atRest(turn, own, input)]), turns)
  const fields = fieldsAfter(turns)
  // For an empty input, the result is the initial value. If the fields of the initial value are unknown, it must stay
  // possible.
  if (fields !== null) return initial.fields === null ? largest([initial, object(fields)]) : object(fields)
  const bytes = bytesAfter(turns)
  const items = lengthAfter(turns, [])
  const whole =
    items === null
      ? anything(bytes, usualAfter(turns))
      : { ...anything(bytes, usualOf(items, usualAfter(turns))), items, isLoose: false }
  if (turn.fields === null || (initial.fields === null && !initial.isScalar)) return whole
  return {
    ...whole,
    fields: new Map(namesOf(turns).map((name) => [name, { ...anything(bytes), ...lengthOf(turns, name) }])),
  }
}

/** Returns the usual length of a list to which each turn adds elements. */
function usualAfter({ initial, turn, input }: Turns): number {
  return initial.usual + input.usual * turn.usual
}

function namesOf({ initial, turn }: Turns): readonly string[] {
  return [...new Set([...(initial.fields?.keys() ?? []), ...(turn.fields?.keys() ?? [])])]
}

function lengthOf(turns: Turns, name: string): Partial<Extent> {
  const items = lengthAfter(turns, [name])
  return items === null ? {} : { items, isLoose: false, usual: usualOf(items) }
}

/** Returns the fields of the result, or null unless each field depends only on itself. */
function fieldsAfter(turns: Turns): ReadonlyMap<string, Extent> | null {
  const { initial, turn, value } = turns
  if (turn.fields === null || (initial.fields === null && !initial.isScalar)) return null
  const fields = new Map<string, Extent>()
  for (const name of namesOf(turns)) {
    const [start, step] = [initial.fields?.get(name) ?? SMALL, turn.fields.get(name) ?? SMALL]
    const place = `${value}.${name}`
    const isOfOthers = [step.bytes, step.items].some((amount) =>
      sizesOf(amount).some((size) => isPartOf(placeOf(size), value) && !isPartOf(placeOf(size), place)),
    )
    if (isOfOthers) return null
    fields.set(name, afterTurns({ ...turns, initial: start, turn: step, value: place }))
  }
  // If the body of the $reduce passes on $$value as a whole, its fields do not bound the result.
  return sizesOf(turn.bytes).some((size) => placeOf(size) === value) ? null : fields
}

/** Removes the sizes of $$value, which mean nothing after the last turn. */
function scrubbed(extent: Extent, turns: Turns): Extent {
  const { bytes, number, items, fields, each } = extent
  return {
    ...extent,
    number: null,
    ...(isOfValue(items, turns) && anything(bytes)),
    ...(number !== null && !isOfValue(number, turns) && { number }),
    fields: fields === null ? null : new Map([...fields].map(([name, field]) => [name, scrubbed(field, turns)])),
    each: each === null ? null : scrubbed(each, turns),
    kept: isOfValue(extent.kept, turns) ? bytes : extent.kept,
  }
}

function placeOf(size: Size): string {
  return measureOf(size).place
}

function isPartOf(place: string, whole: string): boolean {
  return place === whole || place.startsWith(`${whole}.`)
}

function isOfValue(amount: Amount, { value }: Turns): boolean {
  return sizesOf(amount).some((size) => isPartOf(placeOf(size), value))
}

function bytesAfter(turns: Turns): Amount {
  const { initial, turn, input, own, value, name } = turns
  const known = replaced(turn.bytes, (size) => {
    const { of, place } = measureOf(size)
    if (of === 'bytes' || !isPartOf(place, value)) return null
    const path = place === value ? [] : place.slice(value.length + 1).split('.')
    // If only the bytes bound a length, the bytes take its place.
    return lengthAfter(turns, path) ?? sizeOf(bytesAt(place), 1 / ELEMENT_LEAST)
  })
  const [ofValue, added] = split(known, (size) => isPartOf(placeOf(size), value))
  if (isConstant(ofValue)) return most(initial.bytes, withSize(added, own, input.bytes))
  const often = oftenIn([...ofValue.terms.values()])
  const grown = plus(initial.bytes, overAll(added, own, input))
  if (often <= 1) return grown
  const isFew = isConstant(input.items) && input.items.constant <= TURNS_MULTIPLIED
  if (!isFew || often === Infinity) throw multiplied(name, often)
  return scaled(grown, often ** input.items.constant)
}

/** Returns how often the result can contain $$value, or a part of it. Parts that do not overlap count once. */
function oftenIn(terms: readonly Term[]): number {
  if (terms.some(({ sizes }) => sizes.length > 1)) return Infinity
  const found = terms.map(({ times, sizes: [size = ''] }) => {
    const { place, without } = measureOf(size)
    return { times, place, without }
  })
  const places = found.flatMap(({ place, without }) => [
    place,
    `${place}.\0`,
    ...without.map((name) => `${place}.${name}`),
  ])
  const covering = (part: string): number =>
    found
      .filter(
        ({ place, without }) => isPartOf(part, place) && !without.some((name) => isPartOf(part, `${place}.${name}`)),
      )
      .reduce((all, { times }) => all + times, 0)
  return Math.max(...places.map(covering))
}

/**
 * Returns the length of the value, or of the array at a path in it, after all turns. Returns null if only the bytes
 * bound it.
 */
function lengthAfter(turns: Turns, path: readonly string[]): Amount | null {
  const { initial, turn, input, own, value } = turns
  const [start, step] = [fieldAt(initial, path), fieldAt(turn, path)]
  if (start === null || step === null) return null
  const self = lengthAt([value, ...path].join('.'))
  const [before, added] = split(step.items, (size) => size === self)
  if (isOfValue(added, turns) || [...before.terms.values()].some(({ sizes, times }) => sizes.length > 1 || times > 1))
    return null
  if (isConstant(before)) return most(start.items, withSize(added, own, input.bytes))
  return plus(start.items, overAll(added, own, input))
}

function fieldAt(extent: Extent, path: readonly string[]): Extent | null {
  return path.reduce<Extent | null>((at, name) => {
    if (at === null || at.isScalar) return at === null ? null : SMALL
    return at.fields === null ? null : (at.fields.get(name) ?? SMALL)
  }, extent)
}

function multiplied(name: string, often: number): Error {
  const times = often === Infinity ? 'several times' : `${Math.ceil(often)} times`
  return refusedLimit(
    '$reduce',
    `the result of "in" of $reduce contains $$${name} ${times}, so each element multiplies the value; the limit is 1`,
    `Put $$${name} into the result once, as in {"$concatArrays": ["$$${name}", ["$$this"]]}. Uses that only compare or count do not matter.`,
  )
}
