// Writes one page of a description as compact text, small enough for a model's context. The reader can choose tables,
// words to search for and the level of detail. If there is more, the page has a cursor for the next page.
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { invalidRequest } from '../errors.ts'
import { inSlices } from '../event-loop-slices.ts'
import { descriptionOf, type Description, type DescriptionJson, type Table } from './read-description.ts'
import { scoreOf, soughtWords } from './table-search.ts'
import { DETAILS, legend, schemaLine, tableText, type Detail } from './table-text.ts'

export interface PageAsk {
  readonly datasourceId: string
  readonly search?: string
  readonly tables?: readonly string[]
  readonly detail?: Detail
  readonly cursor?: string
  readonly budgetTokens?: number
}

/** Agents get this object unchanged. */
export interface DescribedPage {
  readonly id: string
  readonly name: string
  readonly type: Description['head']['type']
  readonly queryLanguage: string
  readonly schemaCapturedAt: string | null
  readonly profileCapturedAt: string | null
  readonly tableCount: number
  readonly shown: number
  readonly detail: Detail
  readonly schema: string
  readonly nextCursor: string | null
}

/** Clients handle pages of this size well. */
const TOKENS = 12_000
/** Measured. Lists of names have fewer bytes per token than columns with types. */
const BYTES_PER_TOKEN: Readonly<Record<Detail, number>> = { names: 3, columns: 4, full: 4 }
/** Applies even if the caller allows more tokens. */
const BYTES_MAX = 256 * 1024
const FOUND_MAX = 20

/** Throws INVALID_REQUEST for an invalid cursor, and for a cursor of another description or request. */
export async function describedPage(json: DescriptionJson, ask: PageAsk): Promise<DescribedPage> {
  const description = descriptionOf(json)
  const page = cursorOf(ask, description)
  const chosen = await choose(ask, description)
  const bytesFor = (detail: Detail) => Math.min(BYTES_MAX, (ask.budgetTokens ?? TOKENS) * BYTES_PER_TOKEN[detail])
  const detail = page?.detail ?? ask.detail ?? (await detailFor(ask, description, chosen.indexes, bytesFor('columns')))
  const bytesMax = bytesFor(detail)
  return await pageOf({ ask, description, chosen, detail, bytesMax }, page?.at ?? 0)
}

/** An estimate, because the exact number depends on the model. */
export function tokensOf({ schema, detail }: Pick<DescribedPage, 'schema' | 'detail'>): number {
  return Math.ceil(Buffer.byteLength(schema) / BYTES_PER_TOKEN[detail])
}

interface Chosen {
  readonly indexes: readonly number[]
  /** Requested tables that are hidden or do not exist. The reader cannot tell which. */
  readonly missing: readonly string[]
}

async function choose(ask: PageAsk, description: Description): Promise<Chosen> {
  const { search, tables } = ask
  const all = Array.from({ length: description.tableCount }, (_, index) => index)
  if (tables === undefined && search === undefined) return { indexes: all, missing: [] }
  const sought = search === undefined ? [] : soughtWords(search)
  const named = new Map((tables ?? []).map((name) => [name, false]))
  const found: { index: number; score: number }[] = []
  const turn = inSlices()
  for (const index of all) {
    await turn()
    const table = description.table(index)
    const names = [table.table, `${table.schema}.${table.table}`].filter((name) => named.has(name))
    for (const name of names) named.set(name, true)
    if (tables !== undefined && names.length === 0) continue
    const score = search === undefined ? 1 : scoreOf(table, sought)
    if (score > 0) found.push({ index, score })
  }
  const best =
    search === undefined ? found : found.sort((a, b) => b.score - a.score || a.index - b.index).slice(0, FOUND_MAX)
  const missing = [...named].filter(([, isFound]) => !isFound).map(([name]) => name)
  return { indexes: best.map(({ index }) => index), missing }
}

/**
 * Returns `full` for requested tables and `columns` for a search. For all tables, `columns` if they fit, or `names`.
 */
async function detailFor(
  ask: PageAsk,
  description: Description,
  indexes: readonly number[],
  bytesMax: number,
): Promise<Detail> {
  if (ask.tables !== undefined) return 'full'
  if (ask.search !== undefined) return 'columns'
  const turn = inSlices()
  let bytes = 0
  for (const index of indexes) {
    await turn()
    const table = description.table(index)
    bytes += Buffer.byteLength(tableText(table, 'columns', description.head.type)) + 1
    if (bytes > bytesMax) return 'names'
  }
  return 'columns'
}

interface Page {
  readonly ask: PageAsk
  readonly description: Description
  readonly chosen: Chosen
  readonly detail: Detail
  readonly bytesMax: number
}

async function pageOf({ ask, description, chosen, detail, bytesMax }: Page, from: number): Promise<DescribedPage> {
  const { head, tableCount, version } = description
  const { indexes, missing } = chosen
  const text = new PageText(legend(detail, head.vocabulary.table), bytesMax)
  const turn = inSlices()
  let at = from
  for (; at < indexes.length; at++) {
    await turn()
    const index = indexes[at]
    if (index === undefined || !text.add(description.table(index), detail, head.type)) break
  }
  for (const name of missing)
    text.say(`# not exposed, or there is no such ${head.vocabulary.table}: ${JSON.stringify(name)}`)
  if (tableCount === 0) text.say(head.schemaCapturedAt === null ? NOT_INTROSPECTED : NOTHING)
  else if (indexes.length === 0 && ask.search !== undefined) text.say('# nothing fits these words')
  const nextCursor = at < indexes.length ? writeCursor({ version, detail, at, ask: digest(ask) }) : null
  return {
    id: head.id,
    name: head.name,
    type: head.type,
    queryLanguage: head.vocabulary.queryLanguage,
    schemaCapturedAt: head.schemaCapturedAt,
    profileCapturedAt: head.profileCapturedAt,
    tableCount,
    shown: at - from,
    detail,
    schema: text.done(),
    nextCursor,
  }
}

const NOT_INTROSPECTED = '# nothing is known yet: a manager of the team must introspect the datasource'
const NOTHING = '# nothing is exposed: a manager of the team must expose tables'

/** If the first table is too large, the page shows a part of it. */
class PageText {
  readonly #lines: string[]
  readonly #bytesMax: number
  #bytes: number
  #schema: string | null = null
  #isEmpty = true

  constructor(first: string, bytesMax: number) {
    this.#lines = [first]
    this.#bytesMax = bytesMax
    this.#bytes = Buffer.byteLength(first)
  }

  add(table: Table, detail: Detail, kind: Description['head']['type']): boolean {
    const lines = tableText(table, detail, kind).split('\n')
    if (table.schema !== this.#schema) lines.unshift(schemaLine(table.schema, kind))
    const bytes = bytesOf(lines)
    if (this.#bytes + bytes > this.#bytesMax) {
      if (!this.#isEmpty) return false
      this.#addPart(lines)
    } else this.#push(lines, bytes)
    this.#schema = table.schema
    this.#isEmpty = false
    return true
  }

  say(line: string): void {
    this.#lines.push(line)
  }

  done(): string {
    return this.#lines.join('\n')
  }

  #addPart(lines: readonly string[]): void {
    const shown: string[] = []
    let left = this.#bytesMax - this.#bytes
    for (const line of lines) {
      if (Buffer.byteLength(line) + 1 > left) {
        shown.push(`${line.slice(0, Math.max(0, left / WIDEST)).toWellFormed()}…`)
        break
      }
      left -= Buffer.byteLength(line) + 1
      shown.push(line)
    }
    shown.push('# the text above is cut: ask for it with a larger budgetTokens')
    this.#push(shown, bytesOf(shown))
  }

  #push(lines: readonly string[], bytes: number): void {
    this.#lines.push(...lines)
    this.#bytes += bytes
  }
}

/** The maximum length of a UTF-16 code unit in UTF-8. */
const WIDEST = 3

function bytesOf(lines: readonly string[]): number {
  return lines.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0)
}

const Cursor = z.strictObject({
  version: z.string(),
  detail: z.enum(DETAILS),
  at: z.int().min(0),
  ask: z.string(),
})

function writeCursor(cursor: z.infer<typeof Cursor>): string {
  return Buffer.from(JSON.stringify(cursor)).toString('base64url')
}

function cursorOf(ask: PageAsk, { version }: Description): z.infer<typeof Cursor> | null {
  if (ask.cursor === undefined) return null
  const cursor = Cursor.safeParse(jsonOf(Buffer.from(ask.cursor, 'base64url').toString()))
  if (!cursor.success) throw invalidRequest(['cursor: not a cursor of this service'])
  if (cursor.data.version !== version) {
    throw invalidRequest(['cursor: the description has changed since. Call describe_datasource again without cursor'])
  }
  if (cursor.data.ask !== digest(ask)) {
    throw invalidRequest(['cursor: belongs to other arguments. Send the arguments of the call that returned it'])
  }
  return cursor.data
}

/** A cursor contains this digest, so that it can be used only with the same arguments. */
function digest({ datasourceId, search, tables, detail }: PageAsk): string {
  const text = JSON.stringify([datasourceId, search ?? null, tables ?? null, detail ?? null])
  return createHash('sha256').update(text).digest('base64url').slice(0, 12)
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
