// Computes the size of an expression's value and the steps that it takes, before the query is sent. Repetitions multiply.
// mongod builds such a value in memory whatever its size, and no timeout ends it there.
import {
  childrenOf,
  CONSTANT,
  counted,
  countsOf,
  loosened,
  filled,
  below,
  arrayOf,
  elementOf,
  fixedLength,
  isShared,
  innerOf,
  isStored,
  lengthParts,
  eachOf,
  largest,
  lengthsOf,
  moved,
  list,
  literalExtent,
  object,
  OBJECT_BYTES,
  partsIn,
  PIECES,
  SMALL,
  sum,
  times,
  timesOf,
  wholeOf,
  type Extent,
} from './value-size.ts'
import { numberOf } from './parse-ejson.ts'
import { tooLarge, BYTES_MAX, type Meter } from './step-meter.ts'
import { each, LOOKED_AT, longWork, readsOf, stepsByElement, stepsOf, worstSteps } from './operator-steps.ts'
import { isArray, isDocument, type Bson, type BsonDocument } from '../query.ts'
import { boundOf, itemsBetween, RANGE_MAX, writtenItems } from './range-length.ts'
import { refusedGrowth } from './refusal.ts'
import type { Variables } from './variables.ts'

export interface Env {
  readonly meter: Meter
  /** The extent of a path of the document, which $redact may have descended into. */
  readonly document: (path: readonly string[]) => Extent
  /** The extent of a path of the whole document. */
  readonly root: (path: readonly string[]) => Extent
  readonly variables: Variables<Extent>
}

/** The extent of a valid expression. Throws Refusal if it may exceed the bounds. */
export function grown(value: Bson | undefined, env: Env): Extent {
  env.meter.step()
  if (value === undefined) return SMALL
  if (typeof value === 'string') return ofText(value, env)
  if (isArray(value)) return env.meter.made(arrayOf(value.map((each) => grown(each, env))))
  if (!isDocument(value)) return literalExtent(value)
  const entries = Object.entries(value)
  const operator = entries.find(([name]) => name.startsWith('$'))
  if (operator !== undefined) return ofOperator(operator[0], operator[1], env)
  return env.meter.made(object(new Map(entries.map(([name, each]) => [name, grown(each, env)]))))
}

function ofText(text: string, env: Env): Extent {
  if (!text.startsWith('$')) return literalExtent(text)
  const path = text.replace(/^\$+/, '').split('.')
  env.meter.work.spend(path.length)
  if (!text.startsWith('$$')) return read(env.document(path), path.length > 1, env)
  const [name = '', ...rest] = path
  if (name === 'ROOT' || name === 'CURRENT') {
    const found = (name === 'ROOT' ? env.root : env.document)(rest)
    return rest.length === 0 ? readWhole(found, env) : read(found, rest.length > 1, env)
  }
  const known = env.variables.get(name)
  return known === undefined ? SMALL : read(below(known, rest), rest.length > 0, env)
}

/** A path through an array builds a new array. */
function read(found: Extent, isThrough: boolean, env: Env): Extent {
  const isArray = found.each !== null || (found.rows ?? 1) > 1
  if (isThrough && isArray) {
    env.meter.step(found.items * 1.5)
    env.meter.read(found, 1 / 2)
  }
  return found
}

/** mongod 6.0 copies the document. */
function readWhole(whole: Extent, env: Env): Extent {
  env.meter.step(whole.bytes / 500)
  env.meter.read(whole)
  return whole
}

const words = (text: string): ReadonlySet<string> => new Set(text.split(' '))

/** Operators whose value is an argument or a part of an argument. */
const PICKED = words(
  '$arrayElemAt $arrayToObject $deserializeEJSON $first $firstN $ifNull $last $lastN $ltrim $max $maxN $min $minN $regexFind $reverseArray $rtrim $setDifference $setIntersection $slice $sortArray $substr $substrBytes $substrCP $toArray $toObject $trim $unsetField',
)
/** Operators whose value contains all arguments. */
const JOINED = words('$concat $concatArrays $setField $setUnion')
/** Operators that build an array anew. */
const REBUILT = words('$concatArrays $reverseArray $setUnion $sortArray $zip')
/** Operators that write strings, which may be longer than the argument. */
const WRITTEN = words('$convert $dateFromString $dateToString $serializeEJSON $toLower $toString $toUpper $strcasecmp')
const WRITTEN_TIMES = 4
/** They change ASCII letters only. */
const SAME_LENGTH = words('$toLower $toUpper')

function ofOperator(name: string, operand: Bson, env: Env): Extent {
  return moved(madeBy(name, operand, env))
}

function madeBy(name: string, operand: Bson, env: Env): Extent {
  switch (name) {
    case '$literal':
      return literalExtent(operand)
    case '$cond':
      return largest(isArray(operand) ? all(operand, env).slice(1) : fieldsOf(operand, env, ['then', 'else']))
    case '$switch':
      return ofSwitch(operand, env)
    case '$let':
      return ofLet(operand, env)
    case '$map':
    case '$filter':
      return ofLoop(name, operand, env)
    case '$reduce':
      return ofReduce(operand, env)
    case '$range':
      return ofRange(operand, env)
    case '$setField':
    case '$getField':
      return ofField(name, operand, env)
    default:
      return ofValues(name, operand, env)
  }
}

/** Bytes that mongod keeps for an element of an array. */
const ELEMENT_BYTES_KEPT = 16

/** Bytes that an element of the result takes. */
const ELEMENT_KEPT: ReadonlyMap<string, number> = new Map([
  ...each(
    '$concatArrays $firstN $lastN $maxN $minN $reverseArray $setDifference $setIntersection $setUnion',
    ELEMENT_BYTES_KEPT,
  ),
  ...each('$slice $sortArray $toArray', ELEMENT_BYTES_KEPT),
  ['$split', 32],
  ['$objectToArray', OBJECT_BYTES],
  ...each('$arrayToObject $mergeObjects', 40),
])

/** Operators that compute each argument once. */
function ofValues(name: string, operand: Bson, env: Env): Extent {
  const made = valueOf(name, operand, env)
  const kept = ELEMENT_KEPT.get(name)
  if (kept !== undefined) env.meter.builds(made, kept)
  return made
}

function valueOf(name: string, operand: Bson, env: Env): Extent {
  const args = argumentsOf(name, operand, env)
  const given = { operand, args, bytesOf: (extent: Extent) => env.meter.bytesOf(extent) }
  env.meter.step(stepsOf(name, given), worstSteps(name, given))
  const whole = sum(args)
  env.meter.read(whole, readsOf(name, given))
  const byElement = stepsByElement(name)
  if (byElement > 0) for (const arg of args) env.meter.elements(arg, byElement)
  for (const { texts, steps } of longWork(name, given)) env.meter.long(texts, steps)
  // The elements of an array that the query makes are not copied with it.
  if (REBUILT.has(name)) env.meter.copied(sum(args.filter(({ each }) => each === null)))
  if (JOINED.has(name)) return env.meter.made({ ...whole, ...counted(args), each: eachOf(args) })
  if (PICKED.has(name)) return picked(name, operand, args)
  if (WRITTEN.has(name)) {
    const often = SAME_LENGTH.has(name) ? 1 : WRITTEN_TIMES
    const bytes = whole.bytes * often + 100
    return env.meter.made({
      ...times(whole, often),
      bytes,
      items: Math.max(whole.items, whole.parts.size === 0 ? bytes : 0),
    })
  }
  switch (name) {
    case '$mergeObjects':
      return env.meter.made(
        merged(
          args,
          args.map((_, n) => sureNames(isArray(operand) ? operand[n] : operand)),
        ),
      )
    case '$zip':
      return ofZip(args, env)
    case '$split':
      return env.meter.made({ ...whole, bytes: whole.bytes + whole.items * 16, ...piecesOf(operand, args, env) })
    case '$regexFindAll':
      return env.meter.made({ ...times(whole, WRITTEN_TIMES), bytes: whole.bytes + whole.items * OBJECT_BYTES * 2 })
    case '$objectToArray':
      return ofPairs(whole, args[0]?.fields ?? null, env)
    case '$replaceAll':
    case '$replaceOne':
      return ofReplace(name, operand, args, env)
    case '$percentile':
      return { ...SMALL, bytes: whole.bytes + 16 * whole.items, items: whole.items }
    default:
      return ofNumber(name, operand, args)
  }
}

/** The pieces of a stored text by a constant separator can be counted; of others, each byte may be one. */
function piecesOf(operand: Bson, args: readonly Extent[], env: Env): Pick<Extent, 'counts'> {
  const [text, separator] = isArray(operand) ? operand : []
  const any = counted(args.slice(0, 1).map(asText))
  if (typeof separator !== 'string' || separator === '' || separator.startsWith('$')) return any
  const [[name = '', inner] = []] = isDocument(text) ? Object.entries(text) : []
  // A separator without letters finds as many pieces in either case.
  const isCased = SAME_LENGTH.has(name) && !/\p{L}/u.test(separator)
  const path = isCased ? inner : text
  if (typeof path !== 'string' || !/^\$[^$]/.test(path)) return any
  const { place } = env.document(path.slice(1).split('.'))
  if (place === undefined || !isStored(place)) return any
  return { counts: new Map([[PIECES + JSON.stringify([place, separator]), 1]]) }
}

/** The same text, whose characters count. */
function asText(text: Extent): Extent {
  const counts = [...countsOf(text)].map(([part, times]): [string, number] => [
    part === CONSTANT || part.startsWith(PIECES) ? part : PIECES + JSON.stringify([part, '']),
    times,
  ])
  return { ...text, counts: new Map(counts) }
}

/** A number, which may be a count of elements of the arguments. */
function ofNumber(name: string, operand: Bson, args: readonly Extent[]): Extent {
  const items = Math.max(1, ...args.map((arg) => arg.items))
  // The estimate of a number that counts something is a bound only while its counts are known.
  const isCounted = COUNTED.has(name) || name === '$divide'
  const bounds = args.map((arg) => (isCounted || lengthsOf(arg).length === 0 ? arg.most : Infinity))
  return { ...SMALL, most: boundOf(name, operand, bounds, items), ...countsBy(name, operand, args) }
}

const COUNTING = words('$size $strLenCP $strLenBytes $indexOfCP $indexOfBytes $indexOfArray')
const COUNTED = words('$add $subtract $min $max $ifNull $cond $abs $toInt $toLong $toDouble $ceil $floor $trunc $round')

/** The stored parts whose lengths bound a number. */
function countsBy(name: string, operand: Bson, args: readonly Extent[]): Partial<ReturnType<typeof counted>> {
  if (COUNTING.has(name)) return counted(name === '$size' || name === '$indexOfArray' ? args : args.map(asText))
  if (COUNTED.has(name)) return countedBy(args)
  const by = name === '$divide' && isArray(operand) ? Math.abs(numberOf(operand[1]) ?? 0) : 0
  return by === 0 ? {} : countedBy(args.slice(0, 1).map((number) => times(number, Math.max(1, 1 / by))))
}

/** A number that these numbers together bound, if one of them counts something. */
function countedBy(numbers: readonly Extent[]): Partial<ReturnType<typeof counted>> {
  return numbers.some(({ counts }) => counts !== undefined) ? counted(numbers) : {}
}

/** An object has no more fields than are known, if any are. */
function ofPairs(whole: Extent, fields: Extent['fields'], env: Env): Extent {
  const items = fields?.size ?? whole.items
  const lengths = fields === null ? {} : fixedLength(fields.size)
  return env.meter.made({ ...whole, bytes: whole.bytes + items * OBJECT_BYTES, items, ...lengths })
}

function picked(name: string, operand: Bson, args: readonly Extent[]): Extent {
  const found = largest(args)
  const most = name === '$slice' && isArray(operand) ? numberOf(operand.at(-1)) : undefined
  const [array = SMALL] = args
  if (name === '$arrayToObject') return inside(array)
  if (['$arrayElemAt', '$first', '$last'].includes(name)) {
    return array.each ?? (array.fields === null ? inside(array) : { ...loosened(array), bytes: bytesIn(array.fields) })
  }
  if (name === '$max' || name === '$min') return inside(found)
  const length = name.startsWith('$substr') && isArray(operand) ? numberOf(operand[2]) : undefined
  if (length !== undefined && length >= 0 && length <= TEXT_TAKEN)
    return { ...SMALL, bytes: 4 * length + 8, items: 4 * length + 1 }
  const shown = name === '$slice' ? array : found
  return {
    ...shortened(shown, isDocument(operand) ? numberOf(operand['n']) : most),
    ...(name !== '$ifNull' && { least: 0 }),
  }
}

/** A part of a text that is at most so long counts as a text of the query. */
const TEXT_TAKEN = 1_000

/** Bytes of one object with these fields. */
function bytesIn(fields: ReadonlyMap<string, Extent>): number {
  return [...fields.values()].reduce((all, { bytes }) => all + bytes, OBJECT_BYTES)
}

/** A value in this one, or an object with its elements as fields: as long as the longest value in it. */
function inside(extent: Extent): Extent {
  const found = largest(nestedIn(extent))
  const all = { ...found, items: Math.max(found.items, innerOf(found)), least: 0 }
  if (all.parts.size === 0) return { ...all, each: null, fields: null }
  const { counts: _, degree: __, ...whole } = all
  return { ...whole, each: null, fields: null, isSpread: true }
}

function nestedIn(extent: Extent): readonly Extent[] {
  return [extent, ...childrenOf(extent).flatMap(nestedIn)]
}

/** A part of an array with at most `n` elements. So few elements count in full, whatever the array's length. */
const FEW = 100

function shortened(array: Extent, n: number | undefined): Extent {
  if (n === undefined) return array
  const isKnown = lengthsOf(array).length === 0
  const items = isKnown ? Math.min(array.items, Math.abs(n)) : Math.abs(n)
  if (items > Math.max(FEW, array.items)) return array
  const { degree: _, isSpread: __, ...part } = array
  return { ...part, items, ...fixedLength(items) }
}

/** The arguments: the elements of a list, the fields of an object, or the single operand. */
function argumentsOf(name: string, operand: Bson, env: Env): readonly Extent[] {
  if (isArray(operand)) return all(operand, env)
  if (name === '$zip' && isDocument(operand) && isArray(operand['inputs']))
    return [...all(operand['inputs'], env), grown(operand['defaults'], env)]
  if (!isDocument(operand) || Object.keys(operand).some((key) => key.startsWith('$'))) return [grown(operand, env)]
  return all(Object.values(operand), env)
}

function all(values: readonly Bson[], env: Env): readonly Extent[] {
  return values.map((value) => grown(value, env))
}

/** Computes all fields of the operand and returns the named ones. */
function fieldsOf(operand: Bson, env: Env, names: readonly string[]): readonly Extent[] {
  if (!isDocument(operand)) return [SMALL]
  const extents = new Map(Object.entries(operand).map(([name, value]) => [name, grown(value, env)]))
  return names.flatMap((name) => extents.get(name) ?? [])
}

function ofSwitch(operand: Bson, env: Env): Extent {
  if (!isDocument(operand)) return SMALL
  const { branches, default: otherwise } = operand
  const found = isArray(branches) ? branches.flatMap((branch) => fieldsOf(branch, env, ['then'])) : []
  return largest(otherwise === undefined ? found : [...found, grown(otherwise, env)])
}

function ofLet(operand: Bson, env: Env): Extent {
  if (!isDocument(operand) || !isDocument(operand['vars'])) return SMALL
  const own = new Map(Object.entries(operand['vars']).map(([name, value]) => [name, grown(value, env)]))
  return grown(operand['in'], { ...env, variables: env.variables.with(own) })
}

function ofRange(operand: Bson, env: Env): Extent {
  const [start = SMALL, end = SMALL] = argumentsOf('$range', operand, env)
  const items = writtenItems(operand) ?? itemsBetween(operand, start.most, end.most)
  const range = list(SMALL, Math.min(items, RANGE_MAX))
  env.meter.step(range.items / 4)
  const lengths = countedBy([start, end])
  if (lengths.counts === undefined) return env.meter.made(range)
  env.meter.builds({ ...range, ...lengths }, ELEMENT_BYTES_KEPT)
  return { ...env.meter.made(range), ...lengths, parts: lengthParts(lengths.counts) }
}

/** $map and $filter compute their body once for each element. */
function ofLoop(name: '$map' | '$filter', operand: Bson, env: Env): Extent {
  if (!isDocument(operand)) return SMALL
  const input = grown(operand['input'], env)
  env.meter.read(input, LOOKED_AT)
  const { variable, own } = elementIn(operand, input, env)
  const inner = { ...env, variables: env.variables.with(own) }
  const body = env.meter.loop(
    input.items,
    () => {
      env.meter.step()
      const each = grown(operand[name === '$map' ? 'in' : 'cond'], inner)
      env.meter.build(ELEMENT_BYTES_KEPT + (name === '$map' ? filled(each, variable, SMALL, 0).bytes : 0))
      return each
    },
    { array: input, variable },
  )
  if (operand['limit'] !== undefined) grown(operand['limit'], env)
  if (name === '$filter') return shortened(input, numberOf(operand['limit']))
  return env.meter.made(lengthened(overAll(body, variable, input)))
}

/** The variables of a loop: the element and its index. `variable` names the element in extents. */
function elementIn(
  operand: BsonDocument,
  input: Extent,
  env: Env,
): { readonly variable: string; readonly own: Map<string, Extent> } {
  const element = elementOf(input)
  const { parts, items } = input.parts.size > 0 ? input : { ...element, items: input.items }
  const { place } = input
  const variable = env.meter.variable(env.meter.bytesOf(input) / Math.max(1, items), {
    parts,
    items,
    ...(place !== undefined && { place }),
  })
  const { as = 'this', arrayIndexAs: at } = operand
  // An element that the query makes may be as large as all that it is made of, or as long as what it counts.
  const isMixed = input.each !== null && element.parts.size > 0 && (element.counts?.get(CONSTANT) ?? 0) > 0
  const isKnown = !isShared(input) || isMixed || (element.parts.size === 0 && lengthsOf(element).length > 0)
  const own = new Map([[String(as), isKnown ? moved(element) : wholeOf(variable, element)]])
  if (typeof at === 'string') own.set(at, SMALL)
  return { variable, own }
}

/** An array with one value for each element. The parts of all elements together are at most the input array. */
function overAll(body: Extent, variable: string, input: Extent): Extent {
  const often = timesOf(variable, body)
  const own = filled(body, variable, SMALL, 0)
  const { place } = input
  const all =
    place === undefined ? times(input, often) : { ...times(input, often), parts: partsIn(place, body, variable) }
  const put = often === 0 ? own : sum([times(own, input.items), all])
  const each = often === 0 ? body : filled(body, variable, elementOf(input), often)
  return {
    ...(often === 0 ? times(own, input.items) : put),
    ...counted([input]),
    isSpread: input.isSpread === true,
    isShared: own.parts.size === 0 && isShared(input),
    items: input.items,
    least: 0,
    each: { ...each, fields: fieldsFilled(body, variable, input) },
  }
}

/** What is as long as a stored value has parts of it. */
function lengthened(extent: Extent): Extent {
  return extent.parts.size > 0 ? extent : { ...extent, parts: lengthParts(countsOf(extent)) }
}

function fieldsFilled({ fields }: Extent, variable: string, input: Extent): Extent['fields'] {
  if (fields === null) return null
  const element = elementOf(input)
  return new Map([...fields].map(([name, extent]) => [name, { ...filled(extent, variable, element), each: null }]))
}

/** This few iterations may multiply the value, as long as the product is small. */
const TURNS_MULTIPLIED = 16

/** The number of elements that the second evaluation of a $reduce step adds. */
const PROBE = 1_000

/**
 * Evaluates the step three times. First with an empty $$value, which shows what one iteration adds and how often $$value
 * occurs in the result. Then with more elements: if the result grows by a multiple, each iteration multiplies the value.
 * Last with the largest $$value, which shows the number of steps.
 */
function ofReduce(operand: Bson, env: Env): Extent {
  if (!isDocument(operand)) return SMALL
  const input = grown(operand['input'], env)
  const initial = grown(operand['initialValue'], env)
  env.meter.read(input, LOOKED_AT)
  const { variable: element, own } = elementIn(operand, input, env)
  const name = String(operand['valueAs'] ?? 'value')
  const value = env.meter.variable(0)
  const step = (so: Extent): Extent =>
    grown(operand['in'], { ...env, variables: env.variables.with(new Map([...own, [name, so]])) })
  const sized = (items: number): Extent => wholeOf(value, { items, each: null, fields: null, least: 0 })
  const turn = env.meter.trial(() => step(sized(0)))
  const longer = env.meter.trial(() => step(sized(PROBE)))
  const often = Math.max(timesOf(value, turn), moreItems(turn, longer) / PROBE)
  if (often > 1 && input.items > TURNS_MULTIPLIED) throw multiplied(name, often, input.items)
  const result = env.meter.made(afterTurns({ turn, often, input, initial, value, element }))
  const largestValue = env.meter.variable(env.meter.bytesOf(result), { parts: result.parts, items: 1 })
  const last = env.meter.loop(
    input.items,
    () => {
      env.meter.step()
      return step({ ...wholeOf(largestValue, result), ...counted([result]) })
    },
    { array: input, variable: element },
  )
  if (timesOf(value, turn) > 0 || lengthsOf(turn).includes(value)) copies(turn, { input, value, element }, env)
  const more = Math.max(0, env.meter.bytesOf(last) - env.meter.bytesOf(result)) * input.items
  if (more > BYTES_MAX) throw tooLarge('$reduce', more)
  return result
}

/** Each step copies the text that the value has become: the bytes are as many as the pairs of elements. */
function copies(turn: Extent, { input, value, element }: Pick<Turns, 'input' | 'value' | 'element'>, env: Env): void {
  const own = filled(filled(turn, value, SMALL, 0), element, SMALL, 0)
  const eachTurn = (body: () => void): void => env.meter.loop(input.items, body, { array: input })
  eachTurn(() => eachTurn(() => env.meter.turn(own.bytes / COPIED_BYTES / 2)))
}

/**
 * How long what a turn adds is: the query tells it (few), all turns together add the elements in the input's elements
 * (parts), or each may add as much as a stored array (many).
 */
function addedBy({ turn, input, value, element }: Pick<Turns, 'turn' | 'input' | 'value' | 'element'>): Added {
  const isOfValue = (part: string): boolean => part === value || part.startsWith(`${value}.`)
  const lengths = lengthsOf(turn).filter((part) => !isOfValue(part))
  if (lengths.length === 0) return 'few'
  const { parts } = overAll(filled(turn, value, SMALL, 0), element, input)
  const areParts = lengths.every((part) => turn.parts.has(part)) && [...parts.values()].every((often) => often <= 1)
  return areParts ? 'parts' : 'many'
}

type Added = 'few' | 'parts' | 'many'

/** mongod copies a string of so many bytes in a step. */
const COPIED_BYTES = 500

/** How many more elements `other` has than `one`, in the field with the largest difference. */
function moreItems(one: Extent, other: Extent): number {
  let more = other.items - one.items
  for (const [name, field] of other.fields ?? [])
    more = Math.max(more, moreItems(one.fields?.get(name) ?? SMALL, field))
  return more
}

function multiplied(name: string, often: number, turns: number): Error {
  return refusedGrowth(
    '$reduce',
    `the result of a step of $reduce contains $$${name} ${Math.ceil(often)} times, and each of about ${turns} steps multiplies it; the limit is 1`,
    `Put $$${name} into the result once, as in {"$concatArrays": ["$$${name}", ["$$this"]]}. Uses that only compare or count do not matter.`,
  )
}

interface Turns {
  readonly turn: Extent
  readonly often: number
  readonly input: Extent
  readonly initial: Extent
  readonly value: string
  readonly element: string
}

/** initial × oftenⁿ, plus what n iterations add. */
function afterTurns({ turn, often, input, initial, value, element }: Turns): Extent {
  const once = filled(turn, value, SMALL, 0)
  // Only the last turn counts if the value is not kept.
  if (often === 0) return largest([initial, filled(once, element, elementOf(input))])
  const added = overAll(once, element, input)
  const factor = often > 1 ? often ** input.items : 1
  const grew = times(sum([initial, { ...added, each: null }]), factor)
  const items = (initial.items + input.items * turn.items) * factor
  const each =
    initial.items === 0 || initial.each === null || turn.each === null ? turn.each : largest([initial.each, turn.each])
  if (!Number.isFinite(grew.bytes) || grew.bytes > BYTES_MAX) throw tooLarge('$reduce', grew.bytes)
  return lengthened({
    ...grew,
    ...countedAfter({ turn, input, initial, value, element }),
    items,
    each: each === null ? null : atRest(each, [value, element], elementOf(input)),
    fields: fieldsAfter(turn, initial, { value, element, input }),
  })
}

function fieldsAfter(
  turn: Extent,
  initial: Extent,
  { value, element, input }: Pick<Turns, 'value' | 'element' | 'input'>,
): Extent['fields'] {
  if (turn.fields === null) return null
  // What comes through another field of the value may be anything in it.
  const others = [...turn.fields].some(([name, { parts }]) =>
    [...parts.keys()].some((part) => part === value || (part.startsWith(`${value}.`) && part.split('.')[1] !== name)),
  )
  if (others) return null
  const before = initial.fields ?? new Map<string, Extent>()
  const names = new Set([...turn.fields.keys(), ...before.keys()])
  return new Map(
    [...names].map((name) => {
      const first = before.get(name) ?? SMALL
      const field = turn.fields?.get(name) ?? SMALL
      const added = overAll(filled(field, value, SMALL, 0), element, input)
      return [
        name,
        {
          ...sum([first, { ...added, each: null }]),
          ...countedAfter({ turn: field, initial: first, value, element, input }),
          items: first.items + input.items * field.items,
          each: null,
        },
      ]
    }),
  )
}

/** Each turn adds few elements, those of an element, or as many as a stored array has. */
function countedAfter({ initial, ...turns }: Omit<Turns, 'often'>): ReturnType<typeof counted> {
  const { turn, input } = turns
  const added = addedBy(turns)
  if (added === 'few') return counted([initial, times({ ...input, ...counted([input]) }, Math.max(1, turn.items))])
  const all = counted([input, initial, turn])
  if (added === 'parts') return { ...all, isSpread: true }
  const degree = Math.max(initial.degree ?? 1, (input.degree ?? 1) + (turn.degree ?? 1))
  return { ...all, degree: Math.min(degree, DEGREE_MAX) }
}

/** Higher powers fail for any array that is longer than a few elements. */
const DEGREE_MAX = 8

function atRest(extent: Extent, [value = '', element = '']: readonly string[], like: Extent): Extent {
  return { ...filled(filled(extent, value, SMALL, 0), element, like), each: null, fields: null }
}

/**
 * Fields of a later object replace fields of an earlier one, if they are surely there. `sure` has the names of such fields by
 * argument.
 */
function merged(args: readonly Extent[], sure: readonly ReadonlySet<string>[]): Extent {
  const whole = sum(args)
  const parts = new Map(whole.parts)
  const [first] = args
  const [only, ...others] = first?.parts ?? []
  const isVariable = first?.fields === null && only !== undefined && others.length === 0 && only[1] === 1
  if (isVariable)
    for (const name of new Set(sure.flatMap((names) => [...names]))) {
      const part = `${only[0]}.${name}`
      parts.set(part, (parts.get(part) ?? 0) - 1)
    }
  if (args.some((arg) => arg.fields === null)) return { ...whole, parts, fields: null }
  const fields = new Map<string, Extent>()
  for (const [n, arg] of args.entries())
    for (const [name, field] of arg.fields ?? []) {
      const known = sure[n]?.has(name) === true ? undefined : fields.get(name)
      fields.set(name, known === undefined ? field : largest([known, field]))
    }
  return { ...whole, parts, fields }
}

/** The names of fields that the object has, whatever is stored. */
function sureNames(value: Bson | undefined): ReadonlySet<string> {
  if (!isDocument(value) || Object.keys(value).some((name) => name.startsWith('$'))) return new Set()
  return new Set(Object.entries(value).flatMap(([name, field]) => (isThere(field) ? [name] : [])))
}

const NEVER_MISSING = words(
  '$add $concat $concatArrays $divide $filter $map $multiply $setUnion $size $subtract $sum $toLower $toString $toUpper',
)

function isThere(value: Bson): boolean {
  if (typeof value === 'string') return !value.startsWith('$')
  if (!isDocument(value)) return true
  const [name = ''] = Object.keys(value)
  return !name.startsWith('$') || NEVER_MISSING.has(name)
}

function ofField(name: '$setField' | '$getField', operand: Bson, env: Env): Extent {
  const isForm = isDocument(operand) && Object.hasOwn(operand, 'field')
  const field = isForm ? operand['field'] : operand
  const literal = isDocument(field) ? field['$literal'] : field
  const key = typeof literal === 'string' && !literal.startsWith('$') ? literal : null
  if (key === null) grown(field, env)
  const input = isForm && operand['input'] !== undefined ? grown(operand['input'], env) : env.document([])
  env.meter.step((input.fields?.size ?? input.items) / 5)
  if (name === '$getField') return key === null || key.includes('.') ? inside(input) : below(input, [key])
  const value = isForm ? grown(operand['value'], env) : SMALL
  return env.meter.made(
    key === null ? sum([input, value]) : merged([input, object(new Map([[key, value]]))], [new Set(), new Set([key])]),
  )
}

/** As many elements as the longest input, each with one element of every input. The last argument holds the defaults. */
function ofZip(args: readonly Extent[], env: Env): Extent {
  const items = Math.max(0, ...args.map((input) => input.items))
  const inputs = args.slice(0, -1)
  const defaults = args.slice(-1).map((each) => times(each, items))
  const whole = sum([...inputs, ...defaults], items * (40 + args.length * 16))
  // An element of the result has an element of each input.
  const zipped = { ...whole, ...counted(inputs), items, inner: Math.max(inputs.length, innerOf(whole)) }
  env.meter.builds(zipped, 40 + args.length * 16)
  return env.meter.made(zipped)
}

/** A string in which each match may be replaced by a longer string. */
function ofReplace(name: string, operand: Bson, args: readonly Extent[], env: Env): Extent {
  const names = isDocument(operand) ? Object.keys(operand) : []
  const [input = SMALL, find = SMALL, replacement = SMALL] = ['input', 'find', 'replacement'].map(
    (field) => args[names.indexOf(field)] ?? SMALL,
  )
  if (name === '$replaceOne') return env.meter.made(sum([input, replacement]))
  const put = env.meter.bytesOf(replacement) - 8
  const longer = put <= find.least ? 1 : put / Math.max(1, find.least) + (find.least === 0 ? 1 : 0)
  const often = Math.max(1, Math.ceil(longer))
  return env.meter.made({ ...times(input, often), items: input.items * often, least: 0 })
}
