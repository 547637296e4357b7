// The search for the least that must be exposed besides for one query to pass. It knows no query language: it follows
// what the guard refuses, tries what the refused name may mean, and takes away again whatever turns out not to be needed.
import type { Catalog, CatalogColumn, CatalogTable, Denied, Driver, QueryBody, Verdict } from '../drivers/driver.ts'
import { cut, tableKey, type ShownTable } from '../exposure/cut.ts'
import { columnsMeant, mentioned, partsMeant, tablesMeant } from './column-mentions.ts'
import { judge } from './replay.ts'

/** One column to be exposed besides. */
export interface Addition {
  readonly table: CatalogTable
  readonly column: CatalogColumn
}

/** What to add, empty where the query passes as it is; or why nothing would let it pass. */
export type Widening = { readonly additions: readonly Addition[] } | { readonly why: string }

export interface Ground {
  readonly driver: Driver
  readonly body: QueryBody
  /** Everything introspected. */
  readonly full: Catalog
  readonly saved: readonly ShownTable[]
}

const TRIES_MAX = 400
const TOO_MUCH = 'it would take too many tries to find out.'

/** Throws what Driver.confine throws, and the reason of `signal`. */
export async function widen(ground: Ground, signal: AbortSignal): Promise<Widening> {
  const search = new Search(ground, signal)
  const found = await search.grown()
  if ('why' in found) return found
  const least = await search.narrowed(await search.shrunk(found.additions))
  return { additions: await search.starred(least) }
}

class Search {
  readonly #driver: Driver
  readonly #body: QueryBody
  /** What the query does not name cannot matter, and each try is cheaper without it. */
  readonly #near: Catalog
  readonly #saved: readonly ShownTable[]
  readonly #signal: AbortSignal
  #tries = 0

  constructor(ground: Ground, signal: AbortSignal) {
    this.#driver = ground.driver
    this.#body = ground.body
    this.#near = { ...ground.full, tables: mentioned(ground.full, ground.body.text) }
    this.#saved = ground.saved
    this.#signal = signal
  }

  /** Additions with which it passes, perhaps more than it needs. */
  async grown(): Promise<Widening> {
    let additions: readonly Addition[] = []
    for (;;) {
      const verdict = await this.#judged(additions)
      if (verdict.kind === 'confined') return { additions }
      if (verdict.kind === 'malformed') return { why: 'it is no query that could be read.' }
      const more = await this.#step(additions, verdict)
      if (more === null) return await this.#all(additions, verdict)
      if (this.#tries > TRIES_MAX) return { why: TOO_MUCH }
      additions = more
    }
  }

  /** Without what it passes without as well. */
  async shrunk(additions: readonly Addition[]): Promise<readonly Addition[]> {
    let left = additions
    for (let size = Math.ceil(left.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
      for (let from = 0; from < left.length;) {
        const fewer = [...left.slice(0, from), ...left.slice(from + size)]
        if (await this.#passes(fewer)) left = fewer
        else from += size
      }
    }
    return left
  }

  /** A column that has parts gives way to those that are needed, unless it is answered as a whole. */
  async narrowed(additions: readonly Addition[]): Promise<readonly Addition[]> {
    for (const addition of additions) {
      const { table, column } = addition
      const parts = table.columns.filter((each) => each.partOf === column.name && each.unexposable === null)
      if (parts.length === 0) continue
      const others = additions.filter((each) => each !== addition)
      const by = (columns: readonly CatalogColumn[]) => [...others, ...columns.map((each) => ({ table, column: each }))]
      const fewer = by(partsMeant(parts, this.#body.text))
      const outline = await this.#outline(fewer)
      // Where every part would be answered, the column is what was asked for.
      if (outline !== null && outline === (await this.#outline(by(parts)))) return await this.narrowed(fewer)
    }
    return additions
  }

  /** A table that is new and answered as a whole, by `*` say, is shown with all that may be. */
  async starred(additions: readonly Addition[]): Promise<readonly Addition[]> {
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

  /** One addition more, or one each of several; null where none of what the refused name may mean changes anything. */
  async #step(additions: readonly Addition[], denied: Denied): Promise<readonly Addition[] | null> {
    const candidates = this.#candidates(additions, denied)
    for (const candidate of candidates) {
      const more = [...additions, candidate]
      if (!isSame(denied, await this.#judged(more))) return more
    }
    if (candidates.length < 2) return null
    // The same name may be hidden in several places, each refused in the same words.
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

  /** Something of a table to begin with: a column that the query names, else its first. */
  #first(table: CatalogTable): CatalogColumn | undefined {
    const columns = exposable(table)
    const text = this.#body.text.toLowerCase()
    return columns.find((column) => text.includes(column.name.toLowerCase())) ?? columns[0]
  }

  /** Where no name leads on: does it pass with all that it could be shown? */
  async #all(additions: readonly Addition[], denied: Denied): Promise<Widening> {
    const { blocked } = denied
    // A star is no column, and stands for many.
    const isLost = blocked.kind === 'column' && !blocked.name.endsWith('*') && !isMeant(this.#near, blocked.name)
    // With all that may be in it, a column would let any path below it pass, slips of the pen too.
    if (isLost && blocked.name.includes('.')) return { why: nowhere(blocked.name) }
    const shown = this.#shown(additions)
    const rest = this.#near.tables.flatMap((table) =>
      exposable(table)
        .filter((column) => shown.get(keyOf(table))?.has(column.name) !== true)
        .map((column) => ({ table, column })),
    )
    const all = [...additions, ...rest]
    if (rest.length > 0 && (await this.#passes(all))) return { additions: all }
    return { why: isLost ? nowhere(blocked.name) : (this.#forbidden(denied) ?? `${denied.why}.`) }
  }

  /** The refused name, where it is that of a column which may not be exposed. */
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

  /** Whether one column more would be answered, whichever it is. */
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

  /** The columns shown of each table that is. */
  #shown(additions: readonly Addition[]): ReadonlyMap<string, ReadonlySet<string>> {
    const { tables } = cut(this.#near, together(this.#saved, additions))
    return new Map(tables.map((table) => [keyOf(table), new Set(table.columns.map((column) => column.name))]))
  }

  async #passes(additions: readonly Addition[]): Promise<boolean> {
    return (await this.#judged(additions)).kind === 'confined'
  }

  async #judged(additions: readonly Addition[]): Promise<Verdict> {
    this.#tries++
    return await judge(this.#driver, this.#body, cut(this.#near, together(this.#saved, additions)), this.#signal)
  }
}

/** A saved exposure, and what is added to it. */
export function together(saved: readonly ShownTable[], additions: readonly Addition[]): readonly ShownTable[] {
  const tables = new Map(saved.map((shown) => [tableKey(shown.schema, shown.table), shown]))
  for (const { table, column } of additions) {
    const known = tables.get(keyOf(table))
    const columns = known?.columns ?? []
    if (columns.includes(column.name)) continue
    tables.set(keyOf(table), { schema: table.schema, table: table.table, columns: [...columns, column.name] })
  }
  return [...tables.values()]
}

/** What `columns: null` would be frozen into. */
function exposable(table: CatalogTable): readonly CatalogColumn[] {
  return table.columns.filter((column) => column.unexposable === null && column.partOf === undefined)
}

/** Whether some of the tables have a column of that name, or one that it may be a part of. */
export function isMeant({ tables }: Pick<Catalog, 'tables'>, name: string): boolean {
  return tables.some(({ columns }) => columnsMeant(columns, name, columns).length > 0)
}

export function nowhere(name: string): string {
  return `of the tables that it names none has ${name} in the catalog. Look for a typo, or introspect again if it is new.`
}

/** The same refusal, at the same place. */
function isSame(denied: Denied, verdict: Verdict): boolean {
  if (verdict.kind !== 'denied') return false
  const { blocked, position } = verdict
  return blocked.kind === denied.blocked.kind && blocked.name === denied.blocked.name && position === denied.position
}

function keyOf(table: CatalogTable): string {
  return tableKey(table.schema, table.table)
}
