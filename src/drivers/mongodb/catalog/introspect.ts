// Introspects a database: collections, views and indexes, and the paths of a sample of documents. A large collection is
// never read as a whole. Each read has a timeout, after which introspection continues with the documents that it has.
import type * as mongodb from 'mongodb'
import type { Catalog, CatalogColumn, CatalogIndex, CatalogTable } from '../../driver.ts'
import { CAPTURE_VERSION, type MongoCapture, type MongoColumnDetail, type MongoTableDetail } from '../captured-facts.ts'
import { findCollections, type FoundCollection } from './list-collections.ts'
import type { Login } from '../session/connect.ts'
import { failure } from '../session/failure.ts'
import { runInSlices } from '../session/write-large-value.ts'
import { Sample, type Sampled, type SampledPath } from './sample-paths.ts'
import { readValidator, type Declared, type Validator } from './validator.ts'

const SAMPLE = 1_000
const FIRST = 100
const NEWEST = 100
const LOOK_MS = 1_000
/** Limits the bytes of the documents of one read. */
const LOOK_BYTES = 16 * 1024 * 1024

/** Throws the errors of the client library. `progress` counts collections. */
export async function introspect(
  login: Login,
  signal: AbortSignal,
  progress?: (done: number, total: number) => void,
): Promise<Catalog> {
  const db = login.db
  const tables: CatalogTable[] = []
  const all = await findCollections(db, signal)
  for (const [index, found] of all.entries()) {
    const table = await tableOf(db, found, all, signal)
    if (table !== null) tables.push(table)
    progress?.(index + 1, all.length)
  }
  const capture: MongoCapture = {
    version: CAPTURE_VERSION,
    serverVersion: login.serverVersion,
    versionText: login.versionText,
    database: login.database,
  }
  return { capturedAt: new Date().toISOString(), tables, capture }
}

/** Returns null if the login may not read the collection. */
async function tableOf(
  db: mongodb.Db,
  found: FoundCollection,
  all: readonly FoundCollection[],
  signal: AbortSignal,
): Promise<CatalogTable | null> {
  const collection = db.collection(found.name)
  const documents = await counted(db, found.name, signal)
  const sample = new Sample()
  const validator = readValidator(found.options)
  const may = await look(collection, documents, sample, signal)
  if (!may) return null
  if (found.kind !== 'view') sample.declare(['_id'])
  for (const { path } of validator.paths) sample.declare(path)
  const sampled = sample.finish()
  const indexes = found.kind === 'view' ? [] : await indexesOf(collection)
  const detail: MongoTableDetail = {
    kind: found.kind,
    capped: found.options['capped'] === true,
    documents,
    indexedPaths: [...new Set(indexes.flatMap(({ leads }) => (leads === null ? [] : [leads])))],
    complete: sampled.complete,
    collated: await isCollated(db, found, signal),
    ofSeries: isOfSeries(found, all),
  }
  return {
    schema: db.databaseName,
    table: found.name,
    kind: detail.capped ? 'capped collection' : found.kind === 'timeseries' ? 'time-series collection' : found.kind,
    description: validator.description,
    estimatedRows: found.kind === 'view' ? null : documents,
    columns: columnsOf(sampled, validator, found.kind),
    indexes: indexes.flatMap(({ shown }) => (shown === null ? [] : [shown])),
    warnings: warningsOf(sampled),
    looked: { rows: sampled.documents, all: documents !== null && sampled.documents >= documents },
    detail,
  }
}

/** Returns whether a view reads a time series, also through other views. */
function isOfSeries(found: FoundCollection, all: readonly FoundCollection[]): boolean {
  const seen = new Set<FoundCollection>()
  let at: FoundCollection | undefined = found
  while (at?.kind === 'view' && !seen.has(at)) {
    seen.add(at)
    const viewOn: unknown = at.options['viewOn']
    at = all.find(({ name }) => name === viewOn)
  }
  return found.kind === 'view' && at?.kind === 'timeseries'
}

/**
 * Returns the number of documents, from metadata if possible. Returns null if counting takes too long or is not
 * allowed.
 */
function counted(db: mongodb.Db, name: string, signal: AbortSignal): Promise<number | null> {
  return within(null, async () => {
    const { n } = await db.command({ count: name, maxTimeMS: LOOK_MS }, { signal })
    return typeof n === 'number' ? n : null
  })
}

/**
 * Returns true if queries compare texts by a collation, or if this is unknown. The plan of a comparison of two
 * constants shows it, even to a login that may not read the options of collections.
 */
async function isCollated(db: mongodb.Db, { name, options }: FoundCollection, signal: AbortSignal): Promise<boolean> {
  if (options['collation'] !== undefined) return true
  // Byte by byte, B comes before a. By every collation, a comes before B.
  const aggregate = { aggregate: name, pipeline: [{ $project: { collated: { $lt: ['a', 'B'] } } }], cursor: {} }
  return await within(true, async () => {
    const plan = await db.command({ explain: aggregate, verbosity: 'queryPlanner', maxTimeMS: LOOK_MS }, { signal })
    return !JSON.stringify(plan).includes('"collated":{"$const":false}')
  })
}

/**
 * Samples the first documents, so that fields keep their order. In a large collection, also samples the documents with
 * the greatest `_id`, and random documents. Returns false if the login may not read the collection.
 */
async function look(
  collection: mongodb.Collection,
  documents: number | null,
  sample: Sample,
  signal: AbortSignal,
): Promise<boolean> {
  const options = { raw: true, maxTimeMS: LOOK_MS, signal, batchSize: FIRST } as const
  const isSmall = documents !== null && documents <= SAMPLE
  const first = isSmall ? SAMPLE : FIRST
  const may = await taken(sample, signal, () => collection.aggregate([{ $limit: first }], options))
  if (!may || isSmall || sample.documents < first) return may
  await taken(sample, signal, () => collection.find({}, { ...options, sort: { _id: -1 }, limit: NEWEST }))
  await taken(sample, signal, () => collection.aggregate([{ $sample: { size: SAMPLE } }], options))
  return true
}

/**
 * Adds documents to the sample. Returns false if the login may not read the collection. After a timeout, keeps the
 * documents that were read so far.
 */
async function taken(
  sample: Sample,
  signal: AbortSignal,
  open: () => mongodb.AggregationCursor | mongodb.FindCursor<mongodb.Document>,
): Promise<boolean> {
  const cursor = open()
  let bytes = 0
  try {
    for (;;) {
      const document: unknown = await cursor.next()
      if (!(document instanceof Uint8Array)) return true
      await runInSlices(sample.add(document), { signal })
      bytes += document.length
      if (bytes > LOOK_BYTES) return true
    }
  } catch (error) {
    signal.throwIfAborted()
    if (Reflect.get(Object(error), 'code') === 13) return false
    const { code } = failure(error)
    if (code !== 'QUERY_FAILED' && code !== 'QUERY_TIMEOUT') throw error
    return true
  } finally {
    await cursor.close().catch(() => undefined)
  }
}

interface Index {
  /** Null for a text index, which does not name its paths. */
  readonly shown: CatalogIndex | null
  /** An equality filter on this path can use the index, whatever its value is. Null if there is no path that can. */
  readonly leads: string | null
}

function indexesOf(collection: mongodb.Collection): Promise<readonly Index[]> {
  return within([], async () => {
    const all = await collection.listIndexes({ maxTimeMS: LOOK_MS }).toArray()
    return all.map(indexOf)
  })
}

function indexOf(index: mongodb.Document): Index {
  const entries = Object.entries(Object(index['key']))
  const keys = entries.map(([path, value]) => {
    const number = Number(value)
    return { path, direction: typeof value === 'string' ? value : number < 0 ? -1 : 1 }
  })
  const isText = keys.some(({ path }) => path === '_fts')
  const [first] = keys
  const isPartial = ['partialFilterExpression', 'sparse', 'hidden', 'collation'].some((option) =>
    Boolean(index[option]),
  )
  const leads = first !== undefined && typeof first.direction === 'number' && !isPartial && !first.path.includes('$')
  const unique = index['unique'] === true || (keys.length === 1 && first?.path === '_id')
  return { shown: isText ? null : { keys, unique }, leads: leads ? first.path : null }
}

/** Returns `other` if the server refuses the work or takes too long. */
async function within<T>(other: T, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const { code } = failure(error)
    if (code !== 'QUERY_FAILED' && code !== 'QUERY_TIMEOUT') throw error
    return other
  }
}

function columnsOf(sampled: Sampled, validator: Validator, kind: FoundCollection['kind']): readonly CatalogColumn[] {
  const declared = new Map(validator.paths.map((each) => [each.path.join('.'), each]))
  return sampled.paths.map((path) => columnOf(path, sampled.documents, declared.get(path.path), kind))
}

function columnOf(
  path: SampledPath,
  documents: number,
  declared: Declared | undefined,
  kind: FoundCollection['kind'],
): CatalogColumn {
  const isId = path.path === '_id' && kind === 'collection'
  const presence = documents === 0 ? 0 : path.documents / documents
  const items = itemsOf(path)
  const detail: MongoColumnDetail = {
    types: Object.fromEntries(path.types),
    presence,
    ...(items === null ? {} : { items }),
    ...(path.elements.has('array') && { nested: true }),
    top: path.parent === null,
  }
  return {
    name: path.path,
    type: 'bson',
    nullable: !isId && declared?.isAlwaysThere !== true && (presence < 1 || path.types.has('null')),
    primaryKey: isId,
    references: null,
    description: declared?.description ?? null,
    unexposable: null,
    detail,
    signals: signalsOf(path, documents, declared),
    ...(declared?.labels === undefined ? {} : { labels: declared.labels }),
    ...(path.documents > 0 && {
      seen: { rows: path.documents, of: documents, missed: 0, types: [...path.types.keys()] },
    }),
    ...(path.parent === null ? {} : { partOf: path.parent }),
  }
}

/** Returns the mean length of all arrays at the path, or null if there are none. */
function itemsOf({ types, elements }: SampledPath): number | null {
  const arrays = types.get('array') ?? 0
  if (arrays === 0) return null
  return Math.ceil([...elements.values()].reduce((total, n) => total + n, 0) / arrays)
}

function signalsOf(path: SampledPath, documents: number, declared: Declared | undefined): readonly string[] {
  const signals: string[] = []
  if (path.types.size > 0) signals.push(`types seen: ${shares(path.types)}`)
  else if (declared !== undefined && declared.types.length > 0)
    signals.push(`declared as ${declared.types.join(' or ')}`)
  if (path.elements.size > 0) signals.push(`elements of its arrays: ${shares(path.elements)}`)
  if (documents > 0) {
    const share = path.documents === 0 ? 'none' : percent(path.documents, documents)
    signals.push(`in ${share} of ${documents} sampled documents`)
  }
  if (path.isDictionary) signals.push('its keys are data, not names, so only the whole value can be exposed')
  return signals
}

function shares(counts: ReadonlyMap<string, number>): string {
  const all = [...counts].sort((a, b) => b[1] - a[1])
  const total = all.reduce((sum, [, n]) => sum + n, 0)
  return all.map(([type, n]) => (all.length === 1 ? type : `${type} (${percent(n, total)})`)).join(', ')
}

/** Writes 100 % only if `part` is the whole, and other shares as 1 % to 99 %. */
function percent(part: number, whole: number): string {
  if (part === whole) return '100 %'
  return `${Math.min(99, Math.max(1, Math.round((part / whole) * 100)))} %`
}

function warningsOf({ odd, complete }: Sampled): readonly string[] {
  const warnings: string[] = []
  if (odd.length > 0) {
    const names = odd.slice(0, 5).map((name) => JSON.stringify(name))
    warnings.push(
      `Documents have fields whose names a path cannot express: ${names.join(', ')}. They are shown only as part of their parent.`,
    )
  }
  if (!complete)
    warnings.push(
      'The collection has more or deeper paths than listed. Paths that are not listed cannot be exposed separately.',
    )
  return warnings
}
