// The workloads of run.ts on the 200,000 orders of world.ts, in SQL and, where possible, in GraphQL.

export interface Asked {
  readonly sql: string
  /** Absent if GraphQL cannot express the request. If `after` is set, the page starts after this id. */
  readonly graphql?: {
    readonly query: string
    readonly variables: Readonly<Record<string, number>>
    readonly after?: number
  }
}

export interface Workload {
  readonly name: string
  readonly clients: number
  /** The goal for the ratio to the floor. Empty if there is none. */
  readonly goal: string
  /**
   * The CPU time of the floor's process divided by that of the service, as last recorded. Other load on the machine
   * changes this ratio little.
   */
  readonly cpuRatio?: number
  readonly next: () => Asked
}

let turn = 0
const id = (): number => 1 + ((++turn * 7919) % 200_000)

const COLUMNS = 'id, customer_id, total, note, ordered_at'
const FIELDS = 'rowId customerId total note orderedAt'
const ALL_FIELDS = `${FIELDS} paid meta ref`

export const lookUp = (at: number): Asked => ({
  sql: `SELECT ${COLUMNS} FROM orders WHERE id = ${at}`,
  graphql: { query: `query($id: Int!) { orderByRowId(rowId: $id) { ${FIELDS} } }`, variables: { id: at } },
})

export const page = (after: number, rows: number): Asked => ({
  sql: `SELECT * FROM orders WHERE id > ${after} ORDER BY id LIMIT ${rows}`,
  graphql: {
    query: `query($after: Cursor, $rows: Int!) { allOrders(first: $rows, after: $after) { nodes { ${ALL_FIELDS} } } }`,
    variables: { rows },
    after,
  },
})

/** 1.5 kB of SQL that looks up single rows, so that the guard does most of the work. */
const longText = (at: number): string => `WITH recent AS (
  SELECT o.id, o.customer_id, o.total, o.note, o.ordered_at, o.paid FROM orders o
  WHERE o.id BETWEEN ${at} AND ${at + 3} AND o.ordered_at >= '2020-01-01' AND o.total >= 0.50 AND NOT (o.paid AND o.total < 0)
), per_customer AS (
  SELECT r.customer_id, count(*) AS orders, sum(r.total) AS revenue, avg(r.total) AS average, max(r.ordered_at) AS last_order
  FROM recent r GROUP BY r.customer_id HAVING count(*) > 0
), ranked AS (
  SELECT p.customer_id, p.orders, p.revenue, p.average, p.last_order,
    rank() OVER (ORDER BY p.revenue DESC) AS place, p.revenue / sum(p.revenue) OVER () AS share
  FROM per_customer p
)
SELECT k.customer_id AS long${++turn}, c.note AS order_note, k.orders, round(k.revenue, 2) AS revenue, round(k.average, 2) AS average,
  k.place, round(100 * k.share, 3) AS percent, date_trunc('month', k.last_order) AS last_month,
  CASE WHEN k.place <= 10 THEN 'top' WHEN k.place <= 100 THEN 'good' ELSE 'rest' END AS class,
  coalesce(c.total, 0) + k.revenue AS grand_total, upper(left(c.note, 20)) AS shown
FROM ranked k LEFT JOIN orders c ON c.id = ${at} AND c.paid
WHERE k.share > 0.0001 AND (c.note ILIKE '%many%' OR c.note IS NULL) AND k.orders BETWEEN 1 AND 500
  AND EXISTS (SELECT 1 FROM orders x WHERE x.id = ${at} AND x.total >= 0 AND x.customer_id >= 0)
ORDER BY k.place, k.customer_id LIMIT 200`

const byString = (): Asked => ({ sql: `SELECT ${COLUMNS} FROM orders WHERE note = 'note number ${id()} of many'` })

const neverSeen = (): Asked => ({
  sql: `SELECT id AS c${++turn}, customer_id, total, note, ordered_at FROM orders WHERE id = ${id()}`,
})

export const WORKLOADS: readonly Workload[] = [
  { name: 'W1 point look-up, other literals', clients: 16, goal: '1.0', cpuRatio: 0.65, next: () => lookUp(id()) },
  { name: 'W1 with one client', clients: 1, goal: '', next: () => lookUp(id()) },
  { name: 'W1s the same text', clients: 16, goal: '1.25', next: () => lookUp(4711) },
  { name: 'W1t point look-up by a string', clients: 16, goal: '', next: byString },
  { name: 'W1n a shape never seen', clients: 16, goal: '0.5', cpuRatio: 0.13, next: neverSeen },
  { name: 'W1n with one client', clients: 1, goal: '', next: neverSeen },
  { name: 'W1n of 1.5 kB with one client', clients: 1, goal: '', next: () => ({ sql: longText(id()) }) },
  { name: 'W2 100 rows', clients: 16, goal: '1.8', next: () => page(id() % 199_000, 100) },
  {
    name: 'W3 10,000 rows of 8 columns',
    clients: 4,
    goal: '3',
    cpuRatio: 6,
    next: () => page(id() % 180_000, 10_000),
  },
  {
    name: 'W4 group-by over 200,000 rows',
    clients: 4,
    goal: '0.95',
    next: () => ({ sql: 'SELECT customer_id % 100 AS bucket, count(*), sum(total) FROM orders GROUP BY 1 ORDER BY 1' }),
  },
]
