// Writes random queries from a seed. With a growing size they become wider or deeper, or repeat a part. Some contain
// one of the attacks or legitimate queries.
import { chance } from './seeded-random.ts'
import { ATTACKS, LEGIT } from './sample-project.ts'

type Make = (size: number) => string

const QUERIES = [...LEGIT, ...ATTACKS].map(({ sql }) => sql).filter((sql) => /^\s*(?:SELECT|WITH)\b/i.test(sql) && sql.length < 400)
const EXPRESSIONS = ['c.*', '*', 'c.name', '1', "'a'", 'c', 'COUNT(*)', 'STRUCT(c.id AS x)', '[1, 2]', 'c.address']
const TABLES = ['shop.customers', 'shop.orders', '`shop.events_*`', 'w0', 'c.address', 'UNNEST([1, 2])']

const times = (count: number, make: (n: number) => string, joiner: string) =>
  Array.from({ length: count }, (_, n) => make(n)).join(joiner)

export class Grower {
  readonly #chance: () => number

  constructor(seed: number) {
    this.#chance = chance(seed)
  }

  next(): Make {
    const inner = this.#inner()
    return this.#below(3) === 0 ? this.#around(inner) : inner
  }

  #inner(): Make {
    const [query, expression, table] = [this.#pick(QUERIES), this.#pick(EXPRESSIONS), this.#pick(TABLES)]
    const base = `SELECT ${expression} FROM shop.customers c`
    switch (this.#below(12)) {
      case 0:
        return (n) => `SELECT ${times(n, () => expression, ', ')} FROM shop.customers c`
      case 1:
        return (n) => `SELECT 1 FROM shop.customers c${times(n, (k) => `, ${table} ${table.startsWith('UNNEST') ? 'AS ' : ''}t${k}`, '')}`
      case 2:
        return (n) => times(n, () => `(${query})`, ' UNION ALL ')
      case 3:
        return (n) => `WITH ${times(n, (k) => `w${k} AS (${query})`, ', ')} SELECT * FROM w0`
      case 4:
        return (n) => `WITH w0 AS (${base})${times(n, (k) => `, w${k + 1} AS (SELECT a.*, b.* FROM w${k} a JOIN w${k >> 1} b ON TRUE)`, '')} SELECT * FROM w${n}`
      case 5:
        return (n) => `WITH w0 AS (${base})${times(n, (k) => `, w${k + 1} AS (SELECT *, ${k} AS x${k} FROM w${k}, w${k >> 1})`, '')} SELECT * FROM w${n}`
      case 6:
        return (n) => `SELECT ${times(n, () => `(${query})`, ', ')}`
      case 7:
        return (n) => `FROM shop.customers AS c${times(n, (k) => ` |> EXTEND ${k} AS x${k} |> AS t${k}`, '')}`
      case 8:
        return (n) => `FROM shop.customers AS c${times(n, (k) => ` |> CROSS JOIN shop.orders AS t${k}`, '')}`
      case 9:
        return (n) => `SELECT 1 FROM shop.customers c${times(n, (k) => ` JOIN (${query}) t${k} ON c.id = t${k}.id`, '')}`
      case 10:
        return this.#repeated(query)
      default: {
        const depth = 1 + this.#below(20)
        return (n) => {
          let sql = `SELECT ${times(n, () => expression, ', ')} FROM shop.customers c`
          for (let level = 0; level < depth; level++) sql = `SELECT c.*, c.* FROM (${sql}) c`
          return sql
        }
      }
    }
  }

  #repeated(query: string): Make {
    const words = query.split(/(?<=\s|[,()])/)
    const from = this.#below(words.length)
    const to = from + 1 + this.#below(6)
    const [head, part, tail] = [words.slice(0, from), words.slice(from, to), words.slice(to)].map((each) => each.join(''))
    return (n) => `${head}${`${part} `.repeat(n)}${tail}`
  }

  #around(inner: Make): Make {
    const depth = 1 + this.#below(30)
    switch (this.#below(4)) {
      case 0:
        return (n) => `SELECT * FROM (${inner(n)}) AS x`
      case 1:
        return (n) => `WITH x AS (${inner(n)}) SELECT a.*, b.* FROM x a, x b`
      case 2:
        return (n) => `${'SELECT * FROM ('.repeat(depth)}${inner(n)}${')'.repeat(depth)}`
      default:
        return (n) => `SELECT EXISTS(${inner(n)})${`, (SELECT 1)`.repeat(depth)}`
    }
  }

  #below(bound: number): number {
    return Math.floor(this.#chance() * bound)
  }

  #pick<T>(all: readonly T[]): T {
    const one = all[this.#below(all.length)]
    if (one === undefined) throw new Error('nothing to pick from')
    return one
  }
}
