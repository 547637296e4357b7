// Writes random queries over the sample project. About half of them follow the grammar, shadow names, and mix hidden
// and exposed names. In the others, tokens were removed, inserted, swapped, repeated or replaced.
import { chance } from './seeded-random.ts'
import { ATTACKS, LEGIT } from './sample-project.ts'

const SHOWN: readonly (readonly [string, readonly string[]])[] = [
  ['customers', ['id', 'name', 'country', 'address', 'address.city']],
  ['orders', ['id', 'customer_id', 'status', 'total', 'day', 'ordered_at', 'items']],
  ['events_20240101', ['event_name', 'user_id', 'ts', 'params']],
  ['events_*', ['event_name', 'user_id', 'params', '_TABLE_SUFFIX']],
  ['v_notes', ['customer_id']],
]
const SPELLINGS: readonly ((table: string) => string)[] = [
  (table) => `shop.${table.includes('*') ? `\`${table}\`` : table}`,
  (table) => `\`vitrine-test.shop.${table}\``,
  (table) => `\`shop.${table}\``,
  (table) => `vitrine-test.shop.\`${table}\``,
  (table) => `\`vitrine-test\`.\`shop\`.\`${table}\``,
  (table) => `\`vitrine-test.shop\`.\`${table}\``,
]
const HIDDEN_TABLES = [
  'shop.events_secret', 'shop.customer_notes', 'hr.salaries', '`vitrine-test.hr.salaries`', 'other.shop.customers', '`shop.*`', '`shop.events_s*`',
  'SHOP.customers', 'shop.Customers', 'shop.INFORMATION_SCHEMA.TABLES', 'customers', 'shop', '_vt', 'shop.customers.address', '`shop.events_2024*`',
]
const NAMES = ['c', 'o', 't', 'q', 'customers', 'orders', 'shop', '_vt', '_vt_suffix', 'ssn', 'margin', 'x', '`a b`', '`vitrine-test`', 'salaries', 'items', 'id']
const COLUMNS = [
  'id', 'name', 'country', 'customer_id', 'ssn', 'margin', 'amount', 'note', '_TABLE_SUFFIX', '_PARTITIONTIME', '*', 'x', 'SSN', '`ssn`', 'key', 'value', 'sku', 'qty',
]
const FUNCTIONS = [
  'COUNT', 'MAX', 'MIN', 'ANY_VALUE', 'TO_JSON_STRING', 'ARRAY_AGG', 'STRING_AGG', 'LENGTH', 'UPPER', 'SAFE.SUBSTR', 'COALESCE', 'FORMAT',
  'TO_JSON', 'ARRAY_LENGTH', 'IF', 'CAST', 'shop.peek', 'SESSION_USER', 'NET.HOST', 'KEYS.NEW_KEYSET', 'LEFT', 'ROW', 'EXISTS', 'ERROR',
]
const CLAUSES = [
  'PIVOT(COUNT(*) FOR country IN (\'FR\'))', 'UNPIVOT(v FOR k IN (name, country))', 'TABLESAMPLE SYSTEM (10 PERCENT)',
  'FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP()', 'WITH OFFSET AS pos', 'UNPIVOT(v FOR k IN (name, ssn))',
]
const GLUE = [
  'SELECT', 'FROM', 'JOIN', 'WHERE', 'UNION ALL', 'EXCEPT DISTINCT', 'WITH', 'AS', 'ON TRUE', 'USING (id)', '(', ')', ',', '.', '*', '`', "'",
  '|>', 'UNNEST', 'AS STRUCT', 'AS VALUE', 'EXCEPT (id)', 'REPLACE (1 AS id)', 'RECURSIVE', 'LATERAL', 'TABLE', 'NATURAL JOIN', 'GROUP BY ALL',
  'QUALIFY TRUE', 'WINDOW w AS (ORDER BY 1)', 'OVER w', 'IN', 'EXTRACT(DAY FROM', '--', '#', '/*', '*/', '\n', ';', '@p', '[', ']', 'OFFSET(0)',
  'FOR', 'OF', 'CROSS JOIN', 'LEFT JOIN', 'IS DISTINCT FROM', 'ARRAY', 'STRUCT', '<', '>', '"""', "r'", '\\', '->', '=>', 'LIMIT 1', '$', '{',
]
const TOKEN = /'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`[^`]*`|[A-Za-z_]\w*|\d+|\s+|[^]/g

export class QueryMaker {
  readonly #chance: () => number
  #depth = 0
  /** The aliases and columns in the FROM of each open SELECT. The innermost SELECT is last. */
  #scopes: (readonly [string, readonly string[]])[][] = []
  readonly #texts = [...ATTACKS, ...LEGIT].map(({ sql }) => sql).filter((sql) => sql.length < 1000)

  constructor(seed: number) {
    this.#chance = chance(seed)
  }

  next(): string {
    const drawn = this.#chance()
    if (drawn < 0.55) return this.#query()
    if (drawn < 0.8) return this.#wounded(this.#query(), 1)
    if (drawn < 0.95) return this.#wounded(this.#pick(this.#texts), 3)
    return this.#wounded(`${this.#pick(this.#texts)} ${this.#pick(GLUE)} ${this.#query()}`, 2)
  }

  #pick<T>(from: readonly T[]): T {
    return from[Math.floor(this.#chance() * from.length)] as T
  }

  #maybe(share: number, text: () => string): string {
    return this.#chance() < share ? text() : ''
  }

  #list(make: () => string, most: number): string {
    return Array.from({ length: 1 + Math.floor(this.#chance() * most) }, make).join(', ')
  }

  #query(): string {
    if (++this.#depth > 4) {
      this.#depth--
      return 'SELECT id FROM shop.customers'
    }
    const entry = (): string => `${this.#pick(NAMES)} AS (${this.#query()})`
    const start = this.#maybe(0.2, () => `WITH ${this.#maybe(0.2, () => 'RECURSIVE ')}${this.#list(entry, 2)} `)
    const body = this.#chance() < 0.12 ? this.#pipes() : this.#select()
    const rest = this.#maybe(0.1, () => ` ${this.#pick(['UNION ALL', 'UNION DISTINCT', 'EXCEPT DISTINCT', 'INTERSECT DISTINCT'])} ${this.#select()}`)
    const order = this.#maybe(0.15, () => ` ORDER BY ${this.#expression()}`) + this.#maybe(0.1, () => ' LIMIT 5')
    this.#depth--
    return `${start}${body}${rest}${order}`
  }

  #select(): string {
    this.#scopes.push([])
    const kind = this.#maybe(0.08, () => this.#pick(['DISTINCT ', 'AS STRUCT ', 'AS VALUE ', 'ALL ']))
    const from = this.#maybe(0.97, () => ` FROM ${this.#list(() => this.#from(), 2)}`)
    const where = this.#maybe(0.3, () => ` WHERE ${this.#condition()}`)
    const group = this.#maybe(0.1, () => ` GROUP BY ${this.#pick(['1', 'ALL', 'id', 'ssn', 'country', 'ROLLUP(country)'])}`)
    const late = this.#maybe(0.05, () => ` HAVING ${this.#condition()}`) + this.#maybe(0.05, () => ` QUALIFY ${this.#condition()}`)
    const select = `SELECT ${kind}${this.#list(() => this.#item(), 3)}${from}${where}${group}${late}`
    this.#scopes.pop()
    return select
  }

  #pipes(): string {
    const step = (): string =>
      this.#pick([
        () => `WHERE ${this.#condition()}`,
        () => `SELECT ${this.#list(() => this.#item(), 2)}`,
        () => `EXTEND ${this.#expression()} AS ${this.#pick(NAMES)}`,
        () => `JOIN ${this.#from()} ON ${this.#condition()}`,
        () => `AGGREGATE COUNT(*) GROUP BY ${this.#pick(COLUMNS)}`,
        () => `UNION ALL (${this.#query()})`,
        () => `AS ${this.#pick(NAMES)}`,
        () => `DROP ${this.#pick(COLUMNS)}`,
      ])()
    this.#scopes.push([])
    const text = `FROM ${this.#from()} |> ${Array.from({ length: 1 + Math.floor(this.#chance() * 3) }, step).join(' |> ')}`
    this.#scopes.pop()
    return text
  }

  #from(): string {
    const drawn = this.#chance()
    if (drawn < 0.68) return `${this.#table()}${this.#maybe(0.06, () => ` ${this.#pick(CLAUSES)}`)}`
    if (drawn < 0.76) return `(${this.#query()})${this.#alias(['id', 'name'])}${this.#maybe(0.05, () => ` ${this.#pick(CLAUSES)}`)}`
    if (drawn < 0.84) return `${this.#array()}${this.#alias(['sku', 'qty', 'key', 'value'])}`
    if (drawn < 0.87) return this.#pick(NAMES)
    if (drawn < 0.9) return `(${this.#from()} JOIN ${this.#from()} ON TRUE)`
    const join = this.#pick(['JOIN', 'LEFT JOIN', 'CROSS JOIN', 'FULL JOIN', 'INNER JOIN'])
    const sides = `${this.#table()} ${join} ${this.#table()}`
    return `${sides}${join === 'CROSS JOIN' ? '' : this.#pick([' ON TRUE', ' USING (id)', ` ON ${this.#condition()}`])}`
  }

  #table(): string {
    if (this.#chance() < 0.05) return this.#pick(HIDDEN_TABLES)
    const [table, columns] = this.#pick(SHOWN)
    return this.#pick(SPELLINGS)(table) + this.#alias(columns, table.replace('*', ''))
  }

  #array(): string {
    const seen = this.#scopes.at(-1)?.at(-1)
    if (seen !== undefined && this.#chance() < 0.5) {
      const path = `${seen[0]}.${this.#pick(seen[1])}`
      return this.#chance() < 0.5 ? path : `UNNEST(${path})`
    }
    return this.#pick([() => 'UNNEST([1, 2])', () => 'UNNEST([STRUCT(1 AS sku)])', () => `UNNEST(ARRAY(${this.#query()}))`, () => 'o.items'])()
  }

  /** Returns an alias or ''. Adds the item of FROM to the scope, so that later parts of the query can name it. */
  #alias(columns: readonly string[], implicit = ''): string {
    const name = this.#chance() < 0.6 ? this.#pick(NAMES) : ''
    this.#scopes.at(-1)?.push([name === '' ? implicit : name, columns])
    return name === '' ? '' : ` ${this.#maybe(0.5, () => 'AS ')}${name}`
  }

  #column(): string {
    const inSight = this.#scopes.at(-1) ?? []
    if (inSight.length === 0 || this.#chance() < 0.12) return this.#pick(COLUMNS)
    const [name, columns] = this.#pick(this.#chance() < 0.1 ? this.#scopes.flat() : inSight)
    if (name !== '' && this.#chance() < 0.08) return name
    return name === '' || this.#chance() < 0.4 ? this.#pick(columns) : `${name}.${this.#pick(this.#chance() < 0.05 ? COLUMNS : columns)}`
  }

  #item(): string {
    const drawn = this.#chance()
    if (drawn < 0.15) return `*${this.#maybe(0.2, () => this.#pick([' EXCEPT (id)', ' EXCEPT (ssn)', ' REPLACE (1 AS id)', ' REPLACE (ssn AS name)']))}`
    if (drawn < 0.22) return `${this.#scopes.at(-1)?.[0]?.[0] ?? 't'}.*`
    return `${this.#expression()}${this.#maybe(0.3, () => ` AS ${this.#pick(NAMES)}`)}`
  }

  #expression(): string {
    const drawn = this.#chance()
    if (drawn < 0.54) return this.#column()
    if (drawn < 0.58) return this.#pick(NAMES)
    if (drawn < 0.66) return this.#pick(['1', "'x'", 'TRUE', 'NULL', '[1,2]', 'CURRENT_DATE()', "DATE '2024-01-01'", 'STRUCT(1 AS a)', 'STRUCT(ssn)', 'INTERVAL 1 DAY'])
    if (drawn < 0.78) return `${this.#pick(FUNCTIONS)}(${this.#expression()})`
    if (drawn < 0.84) return `(${this.#query()})`
    if (drawn < 0.88) return `ARRAY(${this.#query()})`
    if (drawn < 0.91) return `CASE WHEN ${this.#condition()} THEN ${this.#expression()} ELSE ${this.#expression()} END`
    if (drawn < 0.94) return `(SELECT AS STRUCT ${this.#item()}${this.#maybe(0.5, () => ` FROM ${this.#from()}`)}).${this.#pick(COLUMNS)}`
    if (drawn < 0.97) return `${this.#pick(['RANK()', 'COUNT(*)', `SUM(${this.#column()})`])} OVER (PARTITION BY ${this.#column()} ORDER BY ${this.#column()})`
    return `EXTRACT(DAY FROM ${this.#column()})`
  }

  #condition(): string {
    const drawn = this.#chance()
    if (drawn < 0.3) return `${this.#expression()} = ${this.#expression()}`
    if (drawn < 0.45) return `${this.#expression()} IS NOT NULL`
    if (drawn < 0.6) return `${this.#expression()} IN (${this.#query()})`
    if (drawn < 0.7) return `EXISTS (${this.#query()})`
    if (drawn < 0.75) return `${this.#expression()} IS DISTINCT FROM ${this.#expression()}`
    if (drawn < 0.8) return `${this.#condition()} AND ${this.#condition()}`
    if (drawn < 0.85) return `${this.#expression()} IN UNNEST(${this.#expression()})`
    return 'TRUE'
  }

  #wounded(sql: string, most: number): string {
    const tokens = sql.match(TOKEN) ?? []
    for (let wound = 1 + Math.floor(this.#chance() * most); wound > 0 && tokens.length > 0; wound--) {
      const at = Math.floor(this.#chance() * tokens.length)
      const other = Math.floor(this.#chance() * tokens.length)
      const drawn = this.#chance()
      if (drawn < 0.2) tokens.splice(at, 1)
      else if (drawn < 0.35) tokens.splice(at, 0, this.#pick(GLUE), ' ')
      else if (drawn < 0.5) [tokens[at], tokens[other]] = [tokens[other] as string, tokens[at] as string]
      else if (drawn < 0.6) tokens.splice(at, 0, ...tokens.slice(other, other + 4))
      else if (drawn < 0.75) tokens[at] = this.#pick(COLUMNS)
      else if (drawn < 0.85) tokens[at] = this.#chance() < 0.5 ? this.#pick(HIDDEN_TABLES) : this.#table()
      else if (drawn < 0.92) tokens[at] = this.#pick(NAMES)
      else tokens[at] = this.#pick(GLUE)
    }
    return tokens.join('')
  }
}
