// Programs send the same query repeatedly, with other values in its filters. A shape is a body without these values.
// When a shape was confined twice, its printed stages are cached with gaps for the values. A value is a scalar, such as
// a number, a string or a date, that a filter compares with a path. The verdict must not depend on it. To check this,
// the guard confines the body with a marker instead of each value. The shape is cached only if each marker appears in
// the printed filters and nowhere else.
import type { Catalog } from '../../driver.ts'
import { mayReadLong } from './bounds/collation.ts'
import { SeenTwice } from '../../seen-twice-cache.ts'
import { isArray, isDocument, type Bson, type BsonDocument, type MongoQuery } from '../confined-query.ts'
import { findOf } from './as-find.ts'
import { DEPTH_MAX, type Judged } from './judge.ts'
import { isJson, parseEjson } from './body/parse-ejson.ts'
import { assembled, printedFind, printedValue } from './print.ts'
import { packQuery } from './query-transfer.ts'
import type { MongoBody } from './body/read-body.ts'
import { Broken } from './refusals/refusal.ts'

export interface Shape {
  readonly key: string
  readonly values: readonly Bson[]
}

interface Template {
  /** The query with markers instead of the compared values. */
  readonly query: MongoQuery
  /** The parts of each stage that has gaps. */
  readonly open: ReadonlyMap<BsonDocument, Part>
  readonly texts: ReadonlyMap<BsonDocument, string>
}

/** A gap has the index of the value that fills it. A fixed value has no gaps. A document or an array contains gaps. */
type Part =
  | { readonly kind: 'gap'; readonly index: number }
  | { readonly kind: 'fixed'; readonly value: Bson }
  | { readonly kind: 'document'; readonly fields: readonly (readonly [name: string, part: Part])[] }
  | { readonly kind: 'array'; readonly parts: readonly Part[] }

/** False if the shape cannot be cached. */
type Entry = Template | false

const TEXT_MAX = 4_096
const PRINTED_MAX = 16_384
const VALUES_MAX = 32
const SHAPES_MAX = 200

const shapes = new WeakMap<Catalog, SeenTwice<Entry>>()

/** Returns null if the body is unusual, or if no filter compares a value. */
export function shapeOf(body: MongoBody, rowCap: number): Shape | null {
  // A body that is too deep is refused, and must not be walked here. The key of a shape does not distinguish -0 from 0.
  if (body.text.length > TEXT_MAX || body.depth > DEPTH_MAX || body.hasOddNumber) return null
  const values: Bson[] = []
  const take = (value: unknown): string | null => {
    const kind = kindOf(value)
    if (kind === null) return null
    values.push(parseEjson(value))
    return `\0${kind}`
  }
  try {
    const key = written(body, take)
    return values.length === 0 || values.length > VALUES_MAX ? null : { key: `${rowCap} ${key}`, values }
  } catch (error) {
    // The guard reports this error later.
    if (error instanceof Broken) return null
    throw error
  }
}

/** Returns the query of a known shape with these values, or null if the shape is unknown. */
export function recall(catalog: Catalog, { key, values }: Shape): MongoQuery | null {
  const template = shapes.get(catalog)?.get(key)
  return template === undefined || template === false ? null : filled(template, values)
}

/**
 * When a shape is seen for the second time, finds out whether its values may vary. `judged` confines another body of
 * the shape.
 */
export function remember(
  catalog: Catalog,
  { key, values }: Shape,
  body: MongoBody,
  made: MongoQuery,
  judged: (marked: MongoBody) => Judged,
): void {
  const known = shapes.get(catalog) ?? new SeenTwice<Entry>(SHAPES_MAX)
  shapes.set(catalog, known)
  if (known.get(key) !== undefined || !known.see(key)) return
  known.keep(key, templateOf(values, body, made, judged) ?? false)
}

/**
 * Returns the kind of a value that does not affect the verdict, and null for any other value: null, minKey and maxKey
 * may need a barrier, regular expressions are measured, and arrays and objects are walked.
 */
function kindOf(value: unknown): string | null {
  // A long text of characters that a collation may ignore affects the steps.
  if (typeof value === 'string' && mayReadLong(value)) return null
  if (typeof value === 'string' || typeof value === 'number') return typeof value
  if (!isJson(value)) return null
  const [name = '', ...others] = Object.keys(value)
  return others.length === 0 && name.startsWith('$') && Object.hasOwn(MARKS, name) ? name : null
}

const COMPARING = new Set(['$eq', '$ne', '$gt', '$gte', '$lt', '$lte'])

/**
 * Writes the collection, the filter and the pipeline as JSON, separated by commas. `take` returns a text that replaces
 * a compared value, or null to keep the value.
 */
function written({ collection, filter, pipeline }: MongoBody, take: (value: unknown) => string | null): string {
  const conditions = (value: unknown): string => {
    if (!isJson(value)) return JSON.stringify(value)
    return `{${Object.keys(value)
      .map((name) => `${JSON.stringify(name)}:${condition(name, value[name])}`)
      .join()}}`
  }
  const condition = (name: string, value: unknown): string => {
    if (name === '$and' || name === '$or' || name === '$nor')
      return Array.isArray(value) ? `[${value.map(conditions).join()}]` : JSON.stringify(value)
    return name.startsWith('$') ? JSON.stringify(value) : (take(value) ?? tests(value))
  }
  const tests = (value: unknown): string => {
    if (!isJson(value)) return JSON.stringify(value)
    return `{${Object.keys(value)
      .map((name) => `${JSON.stringify(name)}:${test(name, value[name])}`)
      .join()}}`
  }
  const test = (name: string, value: unknown): string =>
    (COMPARING.has(name) ? take(value) : null) ?? JSON.stringify(value)
  const stage = (value: unknown): string =>
    isJson(value) && Object.hasOwn(value, '$match')
      ? `{"$match":${conditions(value['$match'])}}`
      : JSON.stringify(value)
  const stages = pipeline === null ? '' : `,[${pipeline.map(stage).join()}]`
  return `${JSON.stringify(collection)},${conditions(filter)}${stages}`
}

/**
 * The markers of each kind. No query contains one by chance. A marker has the same BSON type as the value that it
 * replaces.
 */
const MARKS: Readonly<Record<string, (index: number) => unknown>> = {
  string: (index) => `vt-mark-812345601-${index}`,
  number: (index) => 1_812_345_601 + index * 37,
  $oid: (index) => ({ $oid: `8123456018123456018${String(10_000 + index)}` }),
  $date: (index) => ({ $date: { $numberLong: String(1_812_345_601_000 + index * 37) } }),
  $numberLong: (index) => ({ $numberLong: String(8_123_456_018_123_456n + BigInt(index)) }),
  $numberDecimal: (index) => ({ $numberDecimal: `8123456018.${String(10_000 + index)}` }),
  $uuid: (index) => ({ $uuid: `81234560-1812-4345-8601-8123456${String(10_000 + index)}` }),
}

function templateOf(
  values: readonly Bson[],
  body: MongoBody,
  made: MongoQuery,
  judged: (marked: MongoBody) => Judged,
): Template | null {
  const marks = new Map<string, number>()
  let index = 0
  const text = written(body, (value) => {
    const mark = MARKS[kindOf(value) ?? '']?.(index)
    if (mark === undefined) return null
    marks.set(printedValue(parseEjson(mark)), index++)
    return JSON.stringify(mark)
  })
  const printed = made.printed()
  if (printed.length > PRINTED_MAX || [...marks.keys()].some((mark) => printed.includes(mark))) return null
  const [, filter, pipeline = null] = listOf(JSON.parse(`[${text}]`))
  const marked = judged({ ...body, filter, pipeline: pipeline === null ? null : listOf(pipeline) })
  if (marked.kind !== 'made') return null
  const template = templated(marked.query, marks)
  if (template === null) return null
  const again = JSON.stringify(packQuery(filled(template, values)))
  return again === JSON.stringify(packQuery(made)) ? template : null
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** Returns null unless each marker is in exactly one filter and nowhere else. */
function templated(query: MongoQuery, marks: ReadonlyMap<string, number>): Template | null {
  const open = new Map<BsonDocument, Part>()
  const texts = new Map<BsonDocument, string>()
  const found: number[] = []
  for (const stage of new Set([...query.pipeline, ...(query.early ?? [])])) {
    const before = found.length
    const part = partOf(stage, marks, found)
    if (found.length === before) texts.set(stage, printedValue(stage))
    else if (!query.pipeline.includes(stage) || Object.keys(stage).join() !== '$match') return null
    else open.set(stage, part)
  }
  return found.length === marks.size && new Set(found).size === marks.size ? { query, open, texts } : null
}

/** Adds the indexes of the markers in the value to `found`. */
function partOf(value: Bson, marks: ReadonlyMap<string, number>, found: number[]): Part {
  if (isArray(value) || isDocument(value)) {
    const before = found.length
    const part: Part = isArray(value)
      ? { kind: 'array', parts: value.map((each) => partOf(each, marks, found)) }
      : {
          kind: 'document',
          fields: Object.entries(value).map(([name, each]) => [name, partOf(each, marks, found)] as const),
        }
    return found.length === before ? { kind: 'fixed', value } : part
  }
  const index = marks.get(printedValue(value))
  if (index === undefined) return { kind: 'fixed', value }
  found.push(index)
  return { kind: 'gap', index }
}

function filled({ query, open, texts }: Template, values: readonly Bson[]): MongoQuery {
  const made = new Map<BsonDocument, BsonDocument>()
  for (const [stage, part] of open) {
    const whole = build(part, values)
    if (isDocument(whole)) made.set(stage, whole)
  }
  const form = (stages: readonly BsonDocument[]) => stages.map((stage) => made.get(stage) ?? stage)
  const text = (stage: BsonDocument): string => texts.get(stage) ?? printedValue(made.get(stage) ?? stage)
  const pipeline = form(query.pipeline)
  const find = query.find === null ? null : findOf(pipeline)
  const { collection } = query
  return {
    ...{ ...query, pipeline, find },
    early: query.early && form(query.early),
    printed: () =>
      find === null
        ? assembled(collection, query.pipeline.map(text), query.early?.map(text) ?? null)
        : printedFind(collection, find),
  }
}

function build(part: Part, values: readonly Bson[]): Bson {
  switch (part.kind) {
    case 'fixed':
      return part.value
    case 'gap':
      return values[part.index] ?? null
    case 'array':
      return part.parts.map((each) => build(each, values))
    case 'document': {
      const document: Record<string, Bson> = {}
      for (const [name, each] of part.fields) document[name] = build(each, values)
      return document
    }
    default:
      return part satisfies never
  }
}
