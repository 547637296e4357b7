// A small shop in the BigQuery double. Its Brain recognizes a few queries by their text.
import type { Analysis, Brain, Evaluation, WireField, WireValue } from './bigquery-evaluator.ts'
import { startBigQuery, type BigQueryDouble, type DoubleDataset, type DoubleOptions } from './bigquery.ts'

export const PROJECT = 'vitrine-test'
const LOCATION = 'EU'

/** The answer to queries whose printed SQL matches `says`. If several match, the first one counts. */
export interface Known {
  readonly says: RegExp
  readonly analysis?: Analysis
  readonly evaluation?: Evaluation
}

const PRODUCTS: readonly WireField[] = [
  { name: 'id', type: 'INTEGER', mode: 'REQUIRED' },
  { name: 'name', type: 'STRING', mode: 'NULLABLE', description: 'As printed on the shelf.' },
  { name: 'price', type: 'NUMERIC' },
  { name: 'supplier_secret', type: 'STRING' },
]

const SHOP: Readonly<Record<string, DoubleDataset>> = {
  shop: {
    tables: {
      products: {
        schema: { fields: PRODUCTS },
        numRows: '2000',
        tableConstraints: { primaryKey: { columns: ['id'] } },
      },
      secrets: { schema: { fields: [{ name: 'token', type: 'STRING' }] }, numRows: '1' },
    },
  },
}

const table = (tableId: string) => ({ projectId: PROJECT, datasetId: 'shop', tableId })
const FIELD = { id: { name: 'id', type: 'INTEGER' }, name: { name: 'name', type: 'STRING' } }

/** Makes the dry run of a plain query. */
export function select(...tables: readonly string[]): Analysis {
  const statistics = {
    statementType: 'SELECT',
    totalBytesProcessed: tables.length === 0 ? '0' : '32000',
    totalBytesProcessedAccuracy: 'PRECISE',
    ...(tables.length > 0 && { referencedTables: tables.map(table) }),
  }
  return { statistics }
}

const rows = (count: number, cell: (n: number) => readonly WireValue[]): readonly (readonly WireValue[])[] =>
  Array.from({ length: count }, (_, n) => cell(n + 1))

const QUERIES: readonly Known[] = [
  {
    says: /CREATE TABLE/,
    analysis: { error: { status: 403, reason: 'accessDenied', message: 'Access Denied: no bigquery.tables.create' } },
  },
  { says: /^SELECT 1$/, analysis: select() },
  { says: /SELECT COUNT\(\*\) FROM `[^`]*`$/, analysis: select('products') },
  {
    says: /LIMIT 2\b/,
    evaluation: { schema: { fields: [FIELD.id, FIELD.name] }, rows: rows(2, (n) => [String(n), `p${n}`]) },
  },
  { says: /'many'/, evaluation: { schema: { fields: [FIELD.id] }, rows: rows(2000, (n) => [String(n)]) } },
  { says: /'wide'/, evaluation: { schema: { fields: [FIELD.name] }, rows: rows(200, (n) => [`p${n}`.repeat(300)]) } },
  { says: /'slow'/, evaluation: { endless: true } },
  {
    says: /'failing'/,
    evaluation: { error: { status: 400, reason: 'invalidQuery', message: 'Division by zero: CANARY_1 / 0' } },
  },
]

function fitting<K extends keyof Known>(known: readonly Known[], sql: string, key: K): NonNullable<Known[K]> | null {
  return known.find((each) => each[key] !== undefined && each.says.test(sql))?.[key] ?? null
}

class ShopBrain implements Brain {
  readonly #known: readonly Known[]

  constructor(known: readonly Known[] = []) {
    this.#known = [...known, ...QUERIES]
  }

  analyze(sql: string): Promise<Analysis> {
    return Promise.resolve(fitting(this.#known, sql, 'analysis') ?? select('products'))
  }

  evaluate(sql: string): Promise<Evaluation> {
    const known = fitting(this.#known, sql, 'evaluation')
    return known === null ? Promise.reject(new TypeError(`no result is defined for ${sql}`)) : Promise.resolve(known)
  }
}

/** `known` are more queries that the Brain recognizes. */
export function startShop(known: readonly Known[] = [], options: Partial<DoubleOptions> = {}): Promise<BigQueryDouble> {
  return startBigQuery({
    project: PROJECT,
    location: LOCATION,
    datasets: SHOP,
    brain: new ShopBrain(known),
    ...options,
  })
}
