// Reads and writes the JSON of catalogs and exposures in the store. Many columns differ only by name, so their common
// properties are written once. Then a catalog takes about a tenth of its plain JSON and is parsed faster. Throws a
// SyntaxError for invalid JSON, and a ZodError for a wrong shape. Both mean that the store is damaged.
import { z } from 'zod'
import type { Catalog, CatalogColumn, CatalogTable } from '../drivers/driver.ts'
import { inSlices } from '../event-loop-slices.ts'
import type { ShownTable } from './cut-catalog.ts'

/** Columns with the same properties share one ColumnKind. */
const ColumnKind = z.object({
  type: z.string(),
  nullable: z.boolean(),
  primaryKey: z.boolean(),
  references: z.object({ schema: z.string(), table: z.string(), column: z.string() }).nullable(),
  description: z.string().nullable(),
  unexposable: z.string().nullable(),
  partOf: z.string().exactOptional(),
  signals: z.array(z.string()).exactOptional(),
  labels: z.array(z.union([z.string(), z.number(), z.boolean()])).exactOptional(),
  seen: z.object({ rows: z.number(), of: z.number(), missed: z.number(), types: z.array(z.string()) }).exactOptional(),
  detail: z.unknown(),
})

const StoredIndex = z.object({
  keys: z.array(z.object({ path: z.string(), direction: z.union([z.number(), z.string()]) })),
  unique: z.boolean(),
})

const Indexes = z.array(StoredIndex)
const Looked = z.object({ rows: z.number(), all: z.boolean() })

/** The column with the name `names[i]` has the properties `columnKinds[kinds[i]]`. */
interface StoredTable extends Omit<CatalogTable, 'columns' | 'columnsRestricted'> {
  readonly names: readonly string[]
  readonly kinds: readonly number[]
}

const head = { capturedAt: z.string(), capture: z.unknown() }

const StoredCatalog = z.object({
  ...head,
  columnKinds: z.array(ColumnKind),
  tables: z.custom<readonly StoredTable[]>((it) => Array.isArray(it) && it.every(isTable)),
})

/** The previous format, in which each column has all its properties. */
const WholeCatalog = z.object({
  ...head,
  tables: z.array(
    z.object({
      schema: z.string(),
      table: z.string(),
      kind: z.string(),
      description: z.string().nullable(),
      estimatedRows: z.number().nullable(),
      warnings: z.array(z.string()),
      columns: z.array(ColumnKind.extend({ name: z.string() })),
      indexes: Indexes.exactOptional(),
      looked: Looked.exactOptional(),
      detail: z.unknown(),
    }),
  ),
})

const StoredExposure = z.custom<readonly ShownTable[]>((it) => Array.isArray(it) && it.every(isShown))

/** Yields to the event loop, because a catalog may have many tables. */
export async function writeCatalog(catalog: Catalog): Promise<string> {
  const turn = inSlices()
  const numbers = new Map<string, number>()
  const numberOf = ({ name: _, ...kind }: CatalogColumn): number => {
    const text = JSON.stringify(kind)
    const number = numbers.get(text) ?? numbers.size
    numbers.set(text, number)
    return number
  }
  const { tables, ...rest } = catalog
  const written: string[] = []
  for (const { columns, ...table } of tables) {
    await turn()
    const stored = { ...table, names: columns.map((column) => column.name), kinds: columns.map(numberOf) }
    written.push(JSON.stringify(stored))
  }
  // The keys of `numbers` are already JSON.
  const kinds = [...numbers.keys()].join(',')
  return `${JSON.stringify(rest).slice(0, -1)},"tables":[${written.join(',')}],"columnKinds":[${kinds}]}`
}

export function readCatalog(json: string): Catalog {
  const parsed: unknown = JSON.parse(json)
  if (typeof parsed === 'object' && parsed !== null && !('columnKinds' in parsed)) return WholeCatalog.parse(parsed)
  const { columnKinds, tables, ...rest } = StoredCatalog.parse(parsed)
  return { ...rest, tables: tables.map((table) => builtTable(table, columnKinds)) }
}

type Kind = z.infer<typeof ColumnKind>

/** Builds the columns when they are first read, because callers often need the columns of only a few tables. */
function builtTable({ names, kinds, ...table }: StoredTable, columnKinds: readonly Kind[]): CatalogTable {
  const isWhole = names.length === kinds.length && kinds.every((number) => columnKinds[number] !== undefined)
  if (!isWhole) throw damaged('a kind for each column')
  let columns: readonly CatalogColumn[] | undefined
  return {
    ...table,
    get columns() {
      return (columns ??= columnsOf(names, kinds, columnKinds))
    },
  }
}

function columnsOf(names: readonly string[], kinds: readonly number[], columnKinds: readonly Kind[]): CatalogColumn[] {
  return names.map((name, index) => {
    const kind = columnKinds[kinds[index] ?? -1]
    if (kind === undefined) throw damaged('the kind of a column')
    // Spreading into an empty object is fastest, so the name comes last.
    return { ...kind, name }
  })
}

/** Validates a table without zod, which takes several times as long for thousands of tables. */
function isTable(it: unknown): it is StoredTable {
  if (typeof it !== 'object' || it === null) return false
  const { schema, table, kind, description, estimatedRows, warnings, names, kinds, indexes, looked }: Unread = it
  return (
    areStrings([schema, table, kind]) &&
    (description === null || typeof description === 'string') &&
    (estimatedRows === null || typeof estimatedRows === 'number') &&
    areStrings(warnings) &&
    areStrings(names) &&
    Array.isArray(kinds) &&
    kinds.every((number) => typeof number === 'number') &&
    (indexes === undefined || Indexes.safeParse(indexes).success) &&
    (looked === undefined || Looked.safeParse(looked).success)
  )
}

function isShown(it: unknown): it is ShownTable {
  if (typeof it !== 'object' || it === null) return false
  const { schema, table, columns }: { readonly [K in keyof ShownTable]?: unknown } = it
  return areStrings([schema, table]) && areStrings(columns)
}

type Unread = { readonly [K in keyof StoredTable]?: unknown }

function areStrings(it: unknown): it is string[] {
  return Array.isArray(it) && it.every((text) => typeof text === 'string')
}

function damaged(expected: string): z.ZodError {
  return new z.ZodError([{ code: 'custom', path: ['tables'], message: `expected ${expected}`, input: undefined }])
}

export function readExposure(json: string): readonly ShownTable[] {
  return StoredExposure.parse(JSON.parse(json))
}
