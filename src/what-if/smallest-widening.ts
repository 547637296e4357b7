// Searches for the smallest additional exposure with which a query passes. The guard names the table or column for
// which it refuses the query. The search adds a column that this name may mean, and asks the guard again, until the
// query passes. Then it removes every added column that is not needed. It parses no query language.
import type { Catalog, CatalogColumn, CatalogTable, Denied, Driver, QueryBody, Verdict } from '../drivers/driver.ts'
import { cut, tableKey, type ShownTable } from '../exposure/cut-catalog.ts'
import type { TeamOwner } from '../teams/team-owner.ts'
import { columnsMeant, mentioned, partsMeant, tablesMeant } from './column-mentions.ts'
import { judge } from './replay-query.ts'

export interface Addition {
  readonly table: CatalogTable
  readonly column: CatalogColumn
}

/** The columns to add (none if the query already passes), or why no additional exposure lets the query pass. */
export type Widening = { readonly additions: readonly Addition[] } | { readonly why: string }

export interface Ground {
  readonly driver: Driver
  readonly body: QueryBody
  readonly full: Catalog
  readonly saved: readonly ShownTable[]
  readonly owner: TeamOwner
}

/** After this many verdicts of the guard, the search adds no more columns. */
const TRIES_MAX = 400
const TOO_MUCH = 'the search took too many tries.'

export async function widen(ground: Ground, signal: AbortSignal): Promise<Widening> {
  const search = new Search(ground, signal)
  const found = await search.grow()
  if ('why' in found) return found
  const least = await search.narrow(await search.shrink(found.additions))
  return { additions: await search.completeTables(least) }
}

class Search {
  readonly #driver: Driver
  readonly #body: QueryBody
  /** The tables that the query names. A smaller catalog makes each attempt cheaper. */
  readonly #near: Catalog
  readonly #saved: readonly ShownTable[]
  readonly #owner: TeamOwner
  readonly #signal: AbortSignal
  #tries = 0

  constructor(ground: Ground, signal: AbortSignal) {
    this.#driver = ground.driver
    this.#body = ground.body
    this.#near = { ...ground.full, tables: mentioned(ground.full, ground.body.text) }
    this.#saved = ground.saved
    this.#owner = ground.owner
    this.#signal = signal
  }

  /** Adds columns until the query passes. Some of them may not be needed. */
  async grow(): Promise<Widening> {
    let additions: readonly Addition[] = []
    for (;;) {
      const verdict = await this.#judged(additions)
      if (verdict.kind === 'confined') return { additions }
      if (verdict.kind === 'malformed') return { why: 'it cannot be parsed as a query.' }
      const more = await this.#step(additions, verdict)
      if (more === null) return await this.#all(additions, verdict)
      if (this.#tries > TRIES_MAX) return { why: TOO_MUCH }
      additions = more
    }
  }

  async shrink(additions: readonly Addition[]): Promise<readonly Addition[]> {
    let remaining = additions
    for (let size = Math.ceil(remaining.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
      for (let from = 0; from < remaining.length;) {
        const fewer = [...remaining.slice(0, from), ...remaining.slice(from + size)]
        if (await this.#passes(fewer)) remaining = fewer
        else from += size
      }
    }
    return remaining
  }

  /**
   * If the query needs only some nested columns, such as `address.city`, exposes these instead of the whole `address`.
   */
  async narrow(additions: readonly Addition[]): Promise<readonly Addition[]> {
    for (const addition of additions) {
      const { table, column } = addition
      const parts = table.columns.filter((each) => each.partOf === column.name && each.unexposable === null)
      if (parts.length === 0) continue
      const others = additions.filter((each) => each !== addition)
      const by = (columns: readonly CatalogColumn[]) => [...others, ...columns.map((each) => ({ table, column: each }))]
      const fewer = by(partsMeant(parts, this.#body.text))
      const outline = await this.#outline(fewer)
      // If the remaining nested columns also change the result, then the query returns the whole column. Otherwise, the
      // nested columns that it names are enough.
      if (outline !== null && outline === (await this.#outline(by(parts)))) return await this.narrow(fewer)
    }
    return additions
  }

  /** If the query returns all columns of a new table, for example by `*`, exposes all of them. */
  async completeTables(additions: readonly Addition[]): Promise<readonly Addition[]> {
    let all = additions
    const shown = new Set(cut(this.#near, this.#saved).tables.map(keyOf))
    for (const table of new Set(additions.map((addition) => addition.table))) {
      if (shown.has(keyOf(table))) continue
      const others = exposable(table).filter((column) => !all.some((each) => each.column === column))
      if (!(await this.#answersMore(all, table, others))) continue
      const whole = [...all, ...others.map((column) => ({ table, column }))]
      if (await this.#passes(whole)) all = whole
    }
    return all
  }

  /** Null if the guard still refuses the query for the same reason. */
  async #step(additions: readonly Addition[], denied: Denied): Promise<readonly Addition[] | null> {
    const candidates = this.#candidates(additions, denied)
    for (const candidate of candidates) {
      const more = [...additions, candidate]
      if (!isSame(denied, await this.#judged(more))) return more
    }
    if (candidates.length < 2) return null
    // Several hidden columns may have the same name, so that their refusals have the same text. Then adding one of them
    // seems to change nothing, so add all of them.
    const more = [...additions, ...candidates]
    return isSame(denied, await this.#judged(more)) ? null : more
  }

  #candidates(additions: readonly Addition[], { blocked }: Denied): readonly Addition[] {
    const shown = this.#shown(additions)
    if (blocked.kind === 'table') {
      const hidden = this.#near.tables.filter((table) => !shown.has(keyOf(table)))
      return tablesMeant(hidden, blocked.name).flatMap((table) => {
        const column = this.#first(table)
        return column === undefined ? [] : [{ table, column }]
      })
    }
    if (blocked.kind !== 'column') return []
    return this.#near.tables.flatMap((table) => {
      const names = shown.get(keyOf(table))
      if (names === undefined) return []
      const hidden = table.columns.filter((column) => column.unexposable === null && !names.has(column.name))
      return columnsMeant(hidden, blocked.name, table.columns).map((column) => ({ table, column }))
    })
  }

  /** Returns the column of a hidden table to try first: a column that the query names, or else the first column. */
  #first(table: CatalogTable): CatalogColumn | undefined {
    const columns = exposable(table)
    const text = this.#body.text.toLowerCase()
    return columns.find((column) => text.includes(column.name.toLowerCase())) ?? columns[0]
  }

  /** Adds all columns together, if no single column has helped. */
  async #all(additions: readonly Addition[], denied: Denied): Promise<Widening> {
    const { blocked } = denied
    // `orders.*` is not the name of a missing column.
    const isLost = blocked.kind === 'column' && !blocked.name.endsWith('*') && !isMeant(this.#near, blocked.name)
    // If all of `address` is exposed, the misspelled path `address.ctiy` passes too. So refuse an unknown path first.
    if (isLost && blocked.name.includes('.')) return { why: notInCatalog(blocked.name) }
    const shown = this.#shown(additions)
    const rest = this.#near.tables.flatMap((table) =>
      exposable(table)
        .filter((column) => shown.get(keyOf(table))?.has(column.name) !== true)
        .map((column) => ({ table, column })),
    )
    const all = [...additions, ...rest]
    if (rest.length > 0 && (await this.#passes(all))) return { additions: all }
    return { why: isLost ? notInCatalog(blocked.name) : (this.#forbidden(denied) ?? `${denied.why}.`) }
  }

  /** Returns why the refused column may not be exposed. Null if it may be exposed or is unknown. */
  #forbidden({ blocked }: Denied): string | null {
    if (blocked.kind !== 'column') return null
    for (const table of this.#near.tables) {
      const [column] = columnsMeant(
        table.columns.filter((each) => each.unexposable !== null),
        blocked.name,
        table.columns,
      )
      if (column !== undefined)
        return `${table.schema}.${table.table}: ${column.name} may not be exposed: ${column.unexposable}`
    }
    return null
  }

  /** Returns true if the query would return more if `others` were exposed. Tries only the last two of them. */
  async #answersMore(
    additions: readonly Addition[],
    table: CatalogTable,
    others: readonly CatalogColumn[],
  ): Promise<boolean> {
    const outline = await this.#outline(additions)
    const probes = others.slice(-2)
    for (const column of probes) {
      if ((await this.#outline([...additions, { table, column }])) === outline) return false
    }
    return probes.length > 0
  }

  async #outline(additions: readonly Addition[]): Promise<string | null> {
    const verdict = await this.#judged(additions)
    if (verdict.kind !== 'confined') return null
    return this.#driver.outline?.(verdict.query) ?? this.#driver.printed(verdict.query)
  }

  #shown(additions: readonly Addition[]): ReadonlyMap<string, ReadonlySet<string>> {
    const { tables } = cut(this.#near, withAdditions(this.#saved, additions))
    return new Map(tables.map((table) => [keyOf(table), new Set(table.columns.map((column) => column.name))]))
  }

  async #passes(additions: readonly Addition[]): Promise<boolean> {
    return (await this.#judged(additions)).kind === 'confined'
  }

  async #judged(additions: readonly Addition[]): Promise<Verdict> {
    this.#tries++
    return await judge(
      this.#driver,
      this.#body,
      cut(this.#near, withAdditions(this.#saved, additions)),
      this.#owner,
      this.#signal,
    )
  }
}

export function withAdditions(saved: readonly ShownTable[], additions: readonly Addition[]): readonly ShownTable[] {
  const tables = new Map(saved.map((shown) => [tableKey(shown.schema, shown.table), shown]))
  for (const { table, column } of additions) {
    const known = tables.get(keyOf(table))
    const columns = known?.columns ?? []
    if (columns.includes(column.name)) continue
    tables.set(keyOf(table), { schema: table.schema, table: table.table, columns: [...columns, column.name] })
  }
  return [...tables.values()]
}

/** Leaves out nested columns. */
function exposable(table: CatalogTable): readonly CatalogColumn[] {
  return table.columns.filter((column) => column.unexposable === null && column.partOf === undefined)
}

/** Returns true if `name` may mean a column of the tables, or something nested in a column. */
export function isMeant({ tables }: Pick<Catalog, 'tables'>, name: string): boolean {
  return tables.some(({ columns }) => columnsMeant(columns, name, columns).length > 0)
}

export function notInCatalog(name: string): string {
  return `none of the tables it names has ${name} in the catalog. Check the spelling, or introspect again if the column is new.`
}

/** Returns true if the query is still refused for the same thing at the same position. */
function isSame(denied: Denied, verdict: Verdict): boolean {
  if (verdict.kind !== 'denied') return false
  const { blocked, position } = verdict
  return blocked.kind === denied.blocked.kind && blocked.name === denied.blocked.name && position === denied.position
}

function keyOf(table: CatalogTable): string {
  return tableKey(table.schema, table.table)
}
