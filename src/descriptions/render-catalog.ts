// Renders the whole catalog as JSON in UTF-8, for the person who chooses the exposure. Shows for each column whether it
// is exposed, whether it may be personal, and whether it was refused or read recently.
import { readMarks, markedDrafts } from '../profiles/personal-marks.ts'
import { guessByName, guessPersonal, readColumnName, type PersonalGuess } from '../profiles/personal-guess.ts'
import type { NameReading } from '../profiles/personal-names.ts'
import type { Marks } from '../profiles/privacy.ts'
import type { BoundedMap } from '../bounded-map.ts'
import type { Catalog, CatalogColumn, CatalogTable } from '../drivers/driver.ts'
import { tableKey } from '../drivers/table-key.ts'
import type { Catalogs } from '../exposure/catalog-cache.ts'
import type { Store } from '../store/open.ts'
import type { Reached } from '../datasources/require-reach.ts'
import type { Evidence, TableEvidence } from './collected-evidence.ts'
import { readSeen, type Seen, type SeenTable } from './column-stats.ts'
import { joinedTables, type JoinedTables } from './join-tables.ts'
import { inSlices } from '../event-loop-slices.ts'

export interface RenderCatalogDeps {
  readonly store: Pick<Store, 'db'>
  readonly catalogs: Catalogs
  readonly stats: Seen
  readonly names: NameReadings
}

/** Many tables have the same column names. */
export type NameReadings = BoundedMap<string, NameReading>

interface About {
  readonly exposed: CatalogTable | undefined
  readonly marks: Marks
  readonly seen: SeenTable | undefined
  readonly evidence: TableEvidence | undefined
}

export async function renderCatalog(
  deps: RenderCatalogDeps,
  at: Pick<Reached, 'id' | 'row'>,
  full: Catalog,
  evidence: Evidence,
): Promise<JoinedTables> {
  const [exposed, marks, seen] = await Promise.all([
    deps.catalogs.exposed(at.row),
    marksOf(deps, at),
    at.row.profile_version === 0 ? NONE_SEEN : readSeen({ db: deps.store.db, seen: deps.stats }, at.id),
  ])
  const shown = new Map(exposed?.tables.map((table) => [tableKey(table.schema, table.table), table]))
  const { refusalsSince, readsSince, complete } = evidence
  const head = {
    schemaCapturedAt: full.capturedAt,
    exposureVersion: at.row.exposure_version,
    evidence: { refusalsSince, readsSince, complete },
  }
  return await joinedTables(`${JSON.stringify(head).slice(0, -1)},"tables":[`, full.tables, ']}', (table) => {
    const key = tableKey(table.schema, table.table)
    const about = { exposed: shown.get(key), marks: marks.get(key) ?? NO_MARKS, seen: seen.get(key) }
    return tableTexts(deps.names, table, { ...about, evidence: evidence.of(table) })
  })
}

const NONE_SEEN: ReadonlyMap<string, SeenTable> = new Map()
const NO_MARKS: Marks = new Map()

async function marksOf(
  deps: Pick<RenderCatalogDeps, 'store'>,
  { id, row }: Pick<Reached, 'id' | 'row'>,
): Promise<ReadonlyMap<string, Marks>> {
  const marks = new Map<string, Marks>()
  if (row.documentation_version === 0) return marks
  const turn = inSlices()
  for (const { schema, table, draft } of await markedDrafts(deps.store.db, id)) {
    marks.set(tableKey(schema, table), readMarks(draft))
    await turn()
  }
  return marks
}

function tableTexts(names: NameReadings, table: CatalogTable, about: About): readonly string[] {
  const { exposed, evidence } = about
  const head = {
    schema: table.schema,
    table: table.table,
    kind: table.kind,
    estimatedRows: table.estimatedRows,
    ...(table.description !== null && { comment: table.description }),
    warnings: table.warnings,
    exposed: exposed !== undefined,
    refusals7d: evidence?.refusals ?? 0,
    ...(evidence?.lastReadAt !== undefined && { lastReadAt: evidence.lastReadAt }),
  }
  let texts = ''
  // Exposed columns are in the order of the table, and profiled columns usually are.
  let [nextExposed, nextSeen] = [0, 0]
  for (const column of table.columns) {
    const isExposed = exposed?.columns[nextExposed]?.name === column.name
    if (isExposed) nextExposed++
    const columns = about.seen?.columns ?? []
    const seen =
      columns[nextSeen]?.name === column.name ? columns[nextSeen] : columns.find((it) => it.name === column.name)
    if (seen !== undefined) nextSeen++
    const kept = seen?.type === column.type ? seen : undefined
    const known = { mark: about.marks.get(column.name) ?? null, kept }
    const personal = guessPersonal(nameGuess(names, table.table, column), known)
    const text = columnText(column, isExposed, personal, evidence)
    texts += texts === '' ? text : `,${text}`
  }
  return [JSON.stringify(head).slice(0, -1), `,"columns":[${texts}]}`]
}

function nameGuess(names: NameReadings, table: string, column: CatalogColumn): PersonalGuess {
  const key = `${column.labels === undefined ? '' : 'label '}${column.type}\0${column.name}`
  let reading = names.get(key)
  if (reading === undefined) {
    reading = readColumnName(column)
    names.set(key, reading)
  }
  return guessByName(table, reading)
}

/** Written by hand, because JSON.stringify takes three times as long for tens of thousands of columns. */
function columnText(
  column: CatalogColumn,
  isExposed: boolean,
  personal: PersonalGuess,
  evidence: TableEvidence | undefined,
): string {
  const { name, type, nullable, primaryKey, references, description, partOf, unexposable } = column
  const asked = evidence?.column(name)
  let text = `{"name":${JSON.stringify(name)},"type":${JSON.stringify(type)},"nullable":${nullable},"primaryKey":${primaryKey}`
  if (references !== null) text += `,"references":${JSON.stringify(references)}`
  if (description !== null) text += `,"comment":${JSON.stringify(description)}`
  if (partOf !== undefined) text += `,"partOf":${JSON.stringify(partOf)}`
  if (unexposable !== null) text += `,"unexposable":${JSON.stringify(unexposable)}`
  text += `,"personal":{"guess":${personal.guess},"why":${JSON.stringify(personal.why)}}`
  text += `,"exposed":${isExposed},"refusals7d":${asked?.refusals ?? 0}`
  return asked?.lastReadAt === undefined ? `${text}}` : `${text},"lastReadAt":${JSON.stringify(asked.lastReadAt)}}`
}
