// Prints the query that is sent to the database as relaxed Extended JSON, for the audit and for `check`. A guard thread
// also passes its query to the main thread in this form (query-transfer.ts).
import {
  isArray,
  isDocument,
  Scalar,
  type Bson,
  type BsonDocument,
  type Find,
  type MongoQuery,
  type ScalarValue,
} from '../confined-query.ts'

/**
 * Prints one line: {"find": collection, …} or {"aggregate": collection, "pipeline": […]}. `otherwise` has the pipeline
 * that is sent if the first one fails.
 */
export function printed({
  collection,
  pipeline,
  early,
  find,
}: Pick<MongoQuery, 'collection' | 'pipeline' | 'early' | 'find'>): string {
  if (find !== null) return printedFind(collection, find)
  return assembled(collection, pipeline.map(printedValue), early?.map(printedValue) ?? null)
}

export function printedFind(collection: string, { filter, sort, skip, limit, projection }: Find): string {
  const sorted = sort === null ? '' : `,"sort":${printedValue(sort)}`
  const skipped = skip === null ? '' : `,"skip":${printedValue(skip)}`
  const rest = `${sorted}${skipped},"limit":${limit},"projection":${printedProjection(projection)}}`
  return `{"find":${JSON.stringify(collection)},"filter":${printedValue(filter)}${rest}`
}

/** All queries of one exposure share their printed projections. */
const projections = new WeakMap<BsonDocument, string>()

function printedProjection(projection: BsonDocument): string {
  const known = projections.get(projection)
  if (known !== undefined) return known
  const text = printedValue(projection)
  projections.set(projection, text)
  return text
}

/** Joins stages that are already printed. */
export function assembled(collection: string, pipeline: readonly string[], early: readonly string[] | null): string {
  const otherwise = early === null ? '' : `,"otherwise":[${pipeline.join(',')}]`
  return `{"aggregate":${JSON.stringify(collection)},"pipeline":[${(early ?? pipeline).join(',')}]${otherwise}}`
}

/** JSON.parse() and parseEjson() convert the text back to the same value. */
export function printedValue(value: Bson): string {
  if (value instanceof Scalar) return JSON.stringify(wrapped(value.of))
  if (isArray(value)) return `[${value.map(printedValue).join(',')}]`
  if (!isDocument(value)) return JSON.stringify(value)
  return `{${Object.entries(value)
    .map(([name, below]) => `${JSON.stringify(name)}:${printedValue(below)}`)
    .join(',')}}`
}

function wrapped(scalar: ScalarValue): unknown {
  switch (scalar.kind) {
    case '$oid':
      return { $oid: scalar.hex }
    case '$date':
      return { $date: dateText(scalar.milliseconds) }
    case '$numberInt':
    case '$numberLong':
    case '$numberDouble':
      return { [scalar.kind]: String(scalar.value) }
    case '$numberDecimal':
    case '$uuid':
      return { [scalar.kind]: scalar.text }
    case '$binary':
      return { $binary: { base64: scalar.base64, subType: scalar.subType.toString(16).padStart(2, '0') } }
    case '$regularExpression':
      return { $regularExpression: { pattern: scalar.pattern, options: scalar.options } }
    case '$timestamp':
      return { $timestamp: { t: scalar.t, i: scalar.i } }
    case '$minKey':
    case '$maxKey':
      return { [scalar.kind]: 1 }
    default:
      return scalar satisfies never
  }
}

function dateText(milliseconds: number): unknown {
  const iso = new Date(milliseconds).toISOString()
  return iso.length === 24 ? iso : { $numberLong: String(milliseconds) }
}
