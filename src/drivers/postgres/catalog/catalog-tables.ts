// Builds the tables of a Catalog from rows of pg_catalog: keys, references, sizes, and which columns can be exposed.
// Does no I/O.
import { LABEL_CHARS_MAX, LABELS_MAX, type CatalogColumn, type CatalogTable, type Scalar } from '../../driver.ts'
import { inSlices } from '../../../event-loop-slices.ts'
import { grouped, isTrueAt, numberAt, numbersAt, textAt, type Row } from './run-catalog-query.ts'
import type { ColumnDetail, TableDetail } from '../captured-facts.ts'
import type { ReadTypes } from './captured-types.ts'
import { allowedValues } from './check-values.ts'
import { identifier } from '../quote.ts'

/** Rows of the queries of these names (catalog-queries.ts, view-warnings.ts), and the warnings by the oid of a view. */
export interface CatalogRows {
  readonly tables: readonly Row[]
  readonly columns: readonly Row[]
  readonly primaryKeys: readonly Row[]
  readonly foreignKeys: readonly Row[]
  readonly targets: readonly Row[]
  readonly children: readonly Row[]
  readonly viewRelations: readonly Row[]
  readonly enumLabels: readonly Row[]
  readonly checks: readonly Row[]
  readonly warnings: ReadonlyMap<number, readonly string[]>
}

const kindNames: ReadonlyMap<string, readonly [TableDetail['kind'], string]> = new Map([
  ['r', ['r', 'table']],
  ['p', ['p', 'partitioned table']],
  ['v', ['v', 'view']],
  ['m', ['m', 'materialized view']],
  ['f', ['f', 'foreign table']],
])

/** A column before its keys are added. */
interface ReadColumn {
  readonly number: number
  readonly row: Row
}

/** Builds the tables in the order of their rows. Yields to the event loop, because there may be many. */
export async function catalogTables(
  rows: CatalogRows,
  types: ReadTypes,
  searchPath: readonly string[],
): Promise<CatalogTable[]> {
  const turn = inSlices()
  const columns = grouped(
    rows.columns,
    (row) => numberAt(row, 0),
    (row): ReadColumn => ({ number: numberAt(row, 1), row }),
  )
  await turn()
  const keys = new Map(rows.primaryKeys.map((row) => [numberAt(row, 0), row]))
  const references = readReferences(rows)
  const sizes = sizeOf(rows)
  const planned = plannedTables(rows)
  await turn()
  const labels = labelsOf(rows, types)
  const tables: CatalogTable[] = []
  for (const row of rows.tables) {
    await turn()
    const oid = numberAt(row, 0)
    const [kind, kindName] = kindNames.get(textAt(row, 3)) ?? []
    if (kind === undefined || kindName === undefined) continue
    const own = columns.get(oid) ?? []
    const key = keyColumns(keys.get(oid), own)
    const size = sizes(oid)
    const detail: TableDetail = { kind, oid, ...size, ...planned(oid), primaryKey: key.isImmediate ? key.names : [] }
    tables.push({
      schema: textAt(row, 1),
      table: textAt(row, 2),
      kind: kindName,
      description: row[6] ?? null,
      estimatedRows: kind === 'v' || size.tuples < 0 ? null : Math.round(size.tuples),
      columns: own.map((column) =>
        catalogColumn(column, {
          types,
          searchPath,
          isKey: key.names.includes(textAt(column.row, 2)),
          references: references.get(`${oid}.${column.number}`) ?? null,
          labels: labels(oid, column),
        }),
      ),
      warnings: [...tableWarnings(row), ...(rows.warnings.get(oid) ?? [])],
      detail,
    })
  }
  return tables
}

function tableWarnings(row: Row): string[] {
  const [extension, foreignServer] = [row[7] ?? null, row[8] ?? null]
  return [
    ...(extension === null ? [] : [`It belongs to the extension ${extension}, not to your own schema.`]),
    ...(foreignServer === null ? [] : [`It is a foreign table: reading it queries the server ${foreignServer}.`]),
  ]
}

function keyColumns(
  row: Row | undefined,
  columns: readonly ReadColumn[],
): { readonly names: readonly string[]; readonly isImmediate: boolean } {
  if (row === undefined) return { names: [], isImmediate: false }
  const numbers = numbersAt(row, 1).slice(0, numberAt(row, 2))
  const names = numbers.flatMap((number) =>
    columns.filter((column) => column.number === number).map((column) => textAt(column.row, 2)),
  )
  return { names, isImmediate: isTrueAt(row, 3) }
}

type Reference = NonNullable<CatalogColumn['references']>

/** Returns the column that each column references, by "oid.number": of several keys, the one with fewest columns. */
function readReferences(rows: CatalogRows): ReadonlyMap<string, Reference> {
  const names = new Map(rows.targets.map((row) => [`${textAt(row, 0)}.${textAt(row, 1)}`, textAt(row, 2)]))
  const references = new Map<string, Reference>()
  for (const row of rows.foreignKeys) {
    const targets = numbersAt(row, 3)
    for (const [index, number] of numbersAt(row, 1).entries()) {
      const from = `${textAt(row, 0)}.${number}`
      const column = names.get(`${textAt(row, 2)}.${targets[index] ?? 0}`)
      if (column === undefined || references.has(from)) continue
      references.set(from, { schema: textAt(row, 4), table: textAt(row, 5), column })
    }
  }
  return references
}

/**
 * Returns the pages and tuples of a table with all its children, because reading the table reads them. Tuples are -1 if
 * none of them was analysed. The count of an analysed partitioned table already includes its children.
 */
function sizeOf(rows: CatalogRows): (oid: number) => { readonly pages: number; readonly tuples: number } {
  const children = grouped(
    rows.children,
    (row) => numberAt(row, 0),
    (row) => numberAt(row, 1),
  )
  const own = new Map([
    ...rows.children.map((row) => [numberAt(row, 1), [numberAt(row, 2), numberAt(row, 3)] as const] as const),
    ...rows.tables.map((row) => [numberAt(row, 0), [numberAt(row, 4), numberAt(row, 5)] as const] as const),
  ])
  const partitioned = new Set(rows.tables.filter((row) => row[3] === 'p').map((row) => numberAt(row, 0)))
  const size = (oid: number): { readonly pages: number; readonly tuples: number } => {
    const [pages, tuples] = own.get(oid) ?? [0, -1]
    const below = (children.get(oid) ?? []).map(size)
    const counted = below.map((child) => child.tuples).filter((count) => count >= 0)
    const sum = counted.reduce((total, count) => total + count, 0)
    return {
      pages: Math.max(pages, 0) + below.reduce((total, child) => total + child.pages, 0),
      tuples: partitioned.has(oid) && tuples >= 0 ? tuples : counted.length === 0 ? tuples : Math.max(tuples, 0) + sum,
    }
  }
  return size
}

/** Returns TableDetail.tables. */
function plannedTables(rows: CatalogRows): (oid: number) => { readonly tables?: number } {
  const below = grouped(
    [...rows.children, ...rows.viewRelations],
    (row) => numberAt(row, 0),
    (row) => numberAt(row, 1),
  )
  const views = new Set(rows.viewRelations.map((row) => numberAt(row, 0)))
  const known = new Map<number, number>()
  const count = (oid: number): number => {
    const before = known.get(oid)
    if (before !== undefined) return before
    const own = views.has(oid) ? 0 : 1
    const tables = (below.get(oid) ?? []).reduce((sum, child) => sum + count(child), own)
    known.set(oid, tables)
    return tables
  }
  return (oid) => (count(oid) > 1 ? { tables: count(oid) } : {})
}

/** Returns the values that a column's enum or CHECK allows, or undefined if neither limits the values. */
function labelsOf(
  rows: CatalogRows,
  types: ReadTypes,
): (table: number, column: ReadColumn) => readonly Scalar[] | undefined {
  const enums = grouped(
    rows.enumLabels,
    (row) => numberAt(row, 0),
    (row) => textAt(row, 1),
  )
  const below = new Map(types.types.flatMap((type) => (type.kind === 'domain' ? [[type.oid, type.ofOid]] : [])))
  const most = { values: LABELS_MAX, characters: LABEL_CHARS_MAX }
  const checked = new Map(
    rows.checks.flatMap((row) => {
      const values = allowedValues(textAt(row, 2), most)
      return values === null ? [] : [[`${numberAt(row, 0)}.${numberAt(row, 1)}`, values] as const]
    }),
  )
  return (table, { number, row }) => {
    let oid = numberAt(row, 3)
    for (let depth = 0; depth < DOMAINS_MAX && below.has(oid); depth++) oid = below.get(oid) ?? 0
    return checked.get(`${table}.${number}`) ?? enums.get(oid)
  }
}

const DOMAINS_MAX = 32

function catalogColumn(
  column: ReadColumn,
  about: {
    readonly types: ReadTypes
    readonly searchPath: readonly string[]
    readonly isKey: boolean
    readonly references: Reference | null
    readonly labels: readonly Scalar[] | undefined
  },
): CatalogColumn {
  const { row } = column
  const typeOid = numberAt(row, 3)
  const isReadable = isTrueAt(row, 10)
  const detail: ColumnDetail = {
    number: column.number,
    typeOid,
    type: { schema: textAt(row, 5), name: textAt(row, 6) },
    typmod: numberAt(row, 4),
    ...icu(row[11] ?? null),
    ...(isTrueAt(row, 12) && { computed: true as const }),
  }
  return {
    name: textAt(row, 2),
    type: shownType(textAt(row, 7), textAt(row, 5), about.searchPath),
    nullable: !isTrueAt(row, 8) && !about.types.isNotNull(typeOid),
    primaryKey: about.isKey,
    references: about.references,
    description: row[9] ?? null,
    unexposable: isReadable ? about.types.unexposable(typeOid) : 'The login may not read this column.',
    detail,
    ...(about.labels === undefined ? {} : { labels: about.labels }),
  }
}

function icu(collation: string | null): Pick<ColumnDetail, 'icu'> {
  if (collation === null) return {}
  return { icu: collation === 'icu' ? 'deterministic' : 'nondeterministic' }
}

/** Returns the type as the login sees it. Under our search_path, format_type adds the schema to user-defined types. */
function shownType(formatted: string, schema: string, searchPath: readonly string[]): string {
  if (!searchPath.includes(schema)) return formatted
  const prefix = [schema, identifier(schema)].find((name) => formatted.startsWith(`${name}.`))
  return prefix === undefined ? formatted : formatted.slice(prefix.length + 1)
}
