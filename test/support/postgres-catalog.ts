// Exposed catalogs for tests of the guard without a server: the exposed part of the shop that the attacks use, and
// tables that a test adds.
import {
  CAPTURE_VERSION,
  type CapturedExtension,
  type CapturedType,
  type PostgresCapture,
  type TableDetail,
  type TypeName,
} from '../../src/drivers/postgres/captured-facts.ts'
import type { Catalog, CatalogColumn, CatalogTable } from '../../src/drivers/driver.ts'

export interface TableOptions {
  readonly schema?: string
  readonly key?: readonly string[]
  readonly kind?: TableDetail['kind']
  readonly tables?: number
  readonly tuples?: number
}

/** A column is written as "name type". A type without a schema is in pg_catalog. */
export function table(name: string, columns: readonly string[], options: TableOptions = {}): CatalogTable {
  const { kind = 'r', key = [], tables, tuples = 1 } = options
  const detail: TableDetail = { kind, oid: 1, pages: 1, tuples, ...(tables && { tables }), primaryKey: key }
  return {
    schema: options.schema ?? 'public',
    table: name,
    kind: 'table',
    description: null,
    estimatedRows: null,
    columns: columns.map((text, at) => column(text, at + 1)),
    warnings: [],
    detail,
  }
}

function column(text: string, number: number): CatalogColumn {
  const space = text.lastIndexOf(' ')
  const [name, type] = [text.slice(0, space), text.slice(space + 1)]
  return {
    name,
    type,
    nullable: true,
    primaryKey: false,
    references: null,
    description: null,
    unexposable: null,
    detail: { number, typeOid: 25, type: typeName(type), typmod: -1 },
  }
}

function typeName(text: string): TypeName {
  const dot = text.indexOf('.')
  return dot < 0 ? { schema: 'pg_catalog', name: text } : { schema: text.slice(0, dot), name: text.slice(dot + 1) }
}

/** `of` is for a domain or an array. `attributes` ("name type") is for a composite. */
export function type(
  name: string,
  kind: CapturedType['kind'],
  more: {
    readonly of?: string
    readonly attributes?: readonly string[]
    readonly refused?: string
    readonly extension?: string
  } = {},
): CapturedType {
  const dot = name.indexOf('.')
  return {
    oid: 20_000,
    schema: name.slice(0, dot),
    name: name.slice(dot + 1),
    kind,
    extension: more.extension ?? null,
    of: more.of === undefined ? null : typeName(more.of),
    ofOid: 0,
    attributes: (more.attributes ?? []).map((text) => {
      const [attribute = '', of = 'text'] = text.split(' ')
      return { name: attribute, type: typeName(of), typeOid: 25 }
    }),
    delimiter: ',',
    refused: more.refused ?? null,
  }
}

/** A trusted extension in the schema `public`. Without `more`, it has no functions and operators. */
export function extension(name: string, version: string, more: Partial<CapturedExtension> = {}): CapturedExtension {
  return { name, version, schema: 'public', trusted: true, functions: [], operators: [], shadowed: [], ...more }
}

/** The exposed part of the shop. `capture` replaces parts of the facts that are captured from a plain PostgreSQL 18. */
export function shop(capture: Partial<PostgresCapture> = {}, tables: readonly CatalogTable[] = []): Catalog {
  return catalog(
    [
      table('customers', ['id int4', 'name text', 'country text', 'created_at timestamptz'], { key: ['id'] }),
      table('orders', ['id int4', 'customer_id int4', 'status public.order_status', 'total numeric', 'meta jsonb'], {
        key: ['id'],
      }),
      table('order_items', ['order_id int4', 'line_no int2', 'product_id int4'], { key: ['order_id', 'line_no'] }),
      table('products', ['id int4', 'sku text', 'price numeric', 'tags _text', 'doc json'], { key: ['id'] }),
      table('regions', ['country text', 'code text', 'label text'], { key: ['country', 'code'] }),
      table('stores', ['id int4', 'country text', 'region_code text'], { key: ['id'] }),
      table('pg_class', ['id int4', 'label text'], { key: ['id'] }),
      table('Weird Table', ['Id int4', 'Col"umn text', 'select int4', 'a.b text']),
      table('Q1 Report', ['Region Name text', 'from date'], { schema: 'Sales Ops' }),
      ...tables,
    ],
    { types: [type('public.order_status', 'enum')], ...capture },
  )
}

export function catalog(tables: readonly CatalogTable[], capture: Partial<PostgresCapture> = {}): Catalog {
  const whole: PostgresCapture = {
    version: CAPTURE_VERSION,
    serverVersion: 180_000,
    database: 'shop',
    searchPath: ['public'],
    trustedSchemas: [],
    extensions: [],
    types: [],
    implicit: { extensions: [], schemas: [], typesUpTo: 0, judged: [], digest: '' },
    comparesByIcu: false,
    ...capture,
  }
  return { capturedAt: '2024-01-01T00:00:00Z', tables, capture: whole }
}
