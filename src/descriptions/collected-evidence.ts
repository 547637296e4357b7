// Counts how often each table and column of a catalog was refused, and when it was last read. This "evidence" is shown
// to the person who chooses the exposure. query-evidence.ts reads the audit rows.
import type { AuditItem } from '../audit/reading/page.ts'
import type { AuditFilter } from '../audit/reading/row-filter.ts'
import type { Catalog, CatalogTable } from '../drivers/driver.ts'
import { tableKey } from '../drivers/table-key.ts'
import {
  columnBlocked,
  columnsByName,
  namesIn,
  namesOf,
  readsAll,
  tablesBlocked,
  tablesNamed,
  type TableNames,
} from './named-in-query.ts'
import { inSlices } from '../event-loop-slices.ts'

export interface Evidence {
  /** Null until a scan has read rows. */
  readonly refusalsSince: string | null
  /** Null until a scan has read rows. */
  readonly readsSince: string | null
  /** False while the audit is still being read. */
  readonly complete: boolean
  /** Changes whenever the evidence changes. */
  readonly stamp: string
  /** Returns undefined if the table was neither refused nor read. */
  of(table: { readonly schema: string; readonly table: string }): TableEvidence | undefined
}

export interface TableEvidence {
  readonly refusals: number
  readonly lastReadAt: string | undefined
  column(name: string): { readonly refusals: number; readonly lastReadAt: string | undefined }
}

/** `filter` selects either the refused or the answered queries. */
interface Scan {
  readonly filter: AuditFilter
  /** Counts the rows, and stops after ROWS_MAX rows. If the iteration throws, the rows so far stay counted. */
  take(rows: AsyncIterable<readonly AuditItem[]>): Promise<void>
}

const HOUR_MS = 3_600_000
const REFUSAL_HOURS = 7 * 24
const READ_DAYS = 30
/** A scan stops after the batch in which it reaches this many rows. */
const ROWS_MAX = 20_000
/** Another process may store a row up to this long after the time in the row. */
const LATE_MS = 10_000
/** Rows are read newest first. A second row with the same text cannot change when a column was last read. */
const TEXTS_MAX = 5_000

interface Progress {
  /** The next scan starts LATE_MS before this time. Null before the first scan. */
  upTo: number | null
  /** All rows since this time were read. Null before the first scan. */
  since: number | null
  /** The ids of the rows of the last LATE_MS. The next scan reads this period again and skips them. */
  recent: ReadonlySet<string>
}

interface Facts {
  /** The number of refusals by hour. An hour is counted since 1970. */
  readonly refusals: Map<number, number>
  readonly columnRefusals: Map<string, Map<number, number>>
  readonly columnReads: Map<string, string>
  readAt: string | undefined
  allReadAt: string | undefined
}

export class CollectedEvidence {
  readonly catalogVersion: number
  /** In milliseconds since 1970. */
  dueAt = Number.NEGATIVE_INFINITY
  readonly #names: TableNames
  readonly #byKey: ReadonlyMap<string, CatalogTable>
  readonly #columns = new Map<CatalogTable, ReadonlyMap<string, string>>()
  readonly #facts = new Map<string, Facts>()
  readonly #refused: Progress = { upTo: null, since: null, recent: new Set() }
  readonly #read: Progress = { upTo: null, since: null, recent: new Set() }
  #changes = 0

  constructor(catalog: Catalog, catalogVersion: number) {
    this.catalogVersion = catalogVersion
    this.#names = namesOf(catalog)
    this.#byKey = new Map(catalog.tables.map((table) => [tableKey(table.schema, table.table), table]))
  }

  /** Skips queries that an earlier scan has read. */
  refusals(now: number): Scan {
    const from = (Math.floor(now / HOUR_MS) - REFUSAL_HOURS) * HOUR_MS
    const progress = this.#refused
    return {
      filter: { outcomes: ['DENIED'], codes: ['QUERY_DENIED'], from: startOf(progress, from) },
      take: (rows) => this.#take(progress, { now, from }, rows, (row) => this.#addRefusal(row)),
    }
  }

  /** Skips queries that an earlier scan has read. */
  reads(now: number): Scan {
    const from = now - READ_DAYS * 24 * HOUR_MS
    const progress = this.#read
    const texts = new Set<string>()
    return {
      filter: { outcomes: ['ANSWERED'], from: startOf(progress, from) },
      take: (rows) => this.#take(progress, { now, from }, rows, (row) => this.#addRead(row, texts)),
    }
  }

  evidence(now: number, complete: boolean): Evidence {
    const firstHour = Math.floor(now / HOUR_MS) - REFUSAL_HOURS
    const { since } = this.#refused
    const refusalsSince = since === null ? null : iso(Math.max(since, firstHour * HOUR_MS))
    const readsSince = this.#read.since === null ? null : iso(this.#read.since)
    return {
      refusalsSince,
      readsSince,
      complete,
      stamp: [this.#changes, firstHour, refusalsSince, readsSince, complete].join(' '),
      of: ({ schema, table }) => {
        const facts = this.#facts.get(tableKey(schema, table))
        return facts === undefined ? undefined : evidenceOf(facts, firstHour)
      },
    }
  }

  /** If the scan stops early, older rows are never read, and the evidence starts at the oldest row that was read. */
  async #take(
    progress: Progress,
    { now, from }: { readonly now: number; readonly from: number },
    rows: AsyncIterable<readonly AuditItem[]>,
    add: (row: AuditItem) => void,
  ): Promise<void> {
    const turn = inSlices()
    const recent = new Set<string>()
    let taken = 0
    let oldest: number | undefined
    let isWhole = false
    try {
      for await (const portion of rows) {
        for (const row of portion) {
          oldest = Date.parse(row.at)
          if (oldest >= now - LATE_MS) recent.add(row.id)
          if (!progress.recent.has(row.id)) add(row)
          await turn()
        }
        taken += portion.length
        if (taken >= ROWS_MAX) return
      }
      isWhole = true
    } finally {
      if (isWhole || oldest !== undefined) {
        progress.since = isWhole ? (progress.since ?? from) : Math.max(oldest ?? now, progress.since ?? 0)
        progress.upTo = now
        progress.recent = recent
      }
    }
  }

  #addRefusal(row: AuditItem): void {
    const { blocked } = row
    if (blocked === undefined) return
    const hour = Math.floor(Date.parse(row.at) / HOUR_MS)
    if (blocked.kind === 'table') {
      for (const table of tablesBlocked(blocked.name, this.#names)) countAt(this.#factsOf(table).refusals, hour)
    } else if (blocked.kind === 'column') {
      for (const table of tablesNamed(namesIn(row.query ?? ''), this.#names)) {
        const column = columnBlocked(blocked.name, this.#columnsOf(table))
        if (column === undefined) continue
        const { refusals, columnRefusals } = this.#factsOf(table)
        countAt(refusals, hour)
        const hours = columnRefusals.get(column) ?? new Map<number, number>()
        columnRefusals.set(column, hours)
        countAt(hours, hour)
      }
    } else return
    this.#changes++
  }

  #addRead(row: AuditItem, texts: Set<string>): void {
    const { query, tables = [], at } = row
    if (query !== undefined) {
      if (texts.has(query)) return
      if (texts.size < TEXTS_MAX) texts.add(query)
    }
    const names = namesIn(query ?? '')
    const isAll = query !== undefined && readsAll(query)
    for (const { schema, table } of tables) {
      const known = this.#byKey.get(tableKey(schema, table))
      if (known === undefined) continue
      const facts = this.#factsOf(known)
      facts.readAt = later(facts.readAt, at)
      if (isAll) facts.allReadAt = later(facts.allReadAt, at)
      const columns = this.#columnsOf(known)
      for (const name of names) {
        const column = columns.get(name)
        if (column !== undefined) facts.columnReads.set(column, later(facts.columnReads.get(column), at))
      }
      this.#changes++
    }
  }

  #factsOf({ schema, table }: CatalogTable): Facts {
    const key = tableKey(schema, table)
    let facts = this.#facts.get(key)
    if (facts === undefined) {
      facts = {
        refusals: new Map(),
        columnRefusals: new Map(),
        columnReads: new Map(),
        readAt: undefined,
        allReadAt: undefined,
      }
      this.#facts.set(key, facts)
    }
    return facts
  }

  #columnsOf(table: CatalogTable): ReadonlyMap<string, string> {
    const columns = this.#columns.get(table) ?? columnsByName(table)
    this.#columns.set(table, columns)
    return columns
  }
}

function startOf({ upTo }: Progress, from: number): string {
  return iso(upTo === null ? from : Math.max(from, upTo - LATE_MS))
}

function evidenceOf(facts: Facts, firstHour: number): TableEvidence {
  return {
    refusals: sumFrom(facts.refusals, firstHour),
    lastReadAt: facts.readAt,
    column(name) {
      const own = facts.columnReads.get(name)
      const lastReadAt = facts.allReadAt === undefined ? own : later(own, facts.allReadAt)
      return { refusals: sumFrom(facts.columnRefusals.get(name), firstHour), lastReadAt }
    },
  }
}

function sumFrom(hours: ReadonlyMap<number, number> | undefined, first: number): number {
  let sum = 0
  for (const [hour, count] of hours ?? []) if (hour >= first) sum += count
  return sum
}

function countAt(hours: Map<number, number>, hour: number): void {
  hours.set(hour, (hours.get(hour) ?? 0) + 1)
}

function later(known: string | undefined, at: string): string {
  return known === undefined || at > known ? at : known
}

function iso(ms: number): string {
  return new Date(ms).toISOString()
}
