// Finds the table of a path in FROM: its printed name, the columns that may be printed, and the tables that the dry run
// may report. An unknown path is refused. A hidden table and a missing table get the same words.
import type { Source } from './source.ts'
import type { Exposed } from './exposed.ts'
import { near, quotedPath } from './did-you-mean.ts'
import { refusedTable } from './refusal.ts'
import { wildcard } from './wildcard.ts'
import type { Work } from './work-budget.ts'

/**
 * `parts` contain no dots. Throws Refusal if the path is not exposed, belongs to another project, has no dataset, names
 * metadata, or names a view whose tables are unknown.
 */
export function sourceOf(exposed: Exposed, work: Work, parts: readonly string[], at: number): Source {
  const name = parts.join('.')
  if (parts.length === 1) throw unqualified(exposed, name, at)
  checkMetadata(parts, name, at)
  const { project } = exposed.capture
  // The id of a project may contain a domain and therefore dots, so the whole path is compared.
  const own = name.startsWith(`${project}.`) ? name.slice(project.length + 1).split('.') : parts
  const [dataset, table] = own
  if (dataset === undefined || table === undefined || own.length !== 2) throw otherProject(project, name, at)
  const source = table.endsWith('*')
    ? wildcard(exposed, work, dataset, table.slice(0, -1))
    : plainTable(exposed, dataset, table)
  if (source === 'view') throw unknownView(name, at)
  if (source === null)
    throw refusedTable(name, `${near(own.join('.'), exposed.names, quotedPath)}${exposed.listed}`, at)
  return source
}

function plainTable(exposed: Exposed, dataset: string, table: string): Source | 'view' | null {
  const found = exposed.find(dataset, table)
  if (found === null) return null
  const { of, id } = found
  const { columns, names, detail } = of
  if (detail.closure === null) return 'view'
  const closure = [`${exposed.capture.project}.${dataset}.${id}`, ...detail.closure]
  return {
    dataset,
    table: id,
    columns,
    names,
    pseudoColumns: detail.pseudoColumns,
    suffixes: null,
    closure,
    shards: [],
  }
}

function unqualified(exposed: Exposed, name: string, at: number): Error {
  const named = exposed.named(name)
  const hint =
    named.length > 0
      ? `Write ${named.slice(0, 5).join(' or ')}: write a table with its dataset.`
      : `${near(name, exposed.names, quotedPath)}Write a table with its dataset (dataset.table). ${exposed.listed}`
  return refusedTable(name, hint, at)
}

const METADATA = /^(?:INFORMATION_SCHEMA|__TABLES__|__TABLES_SUMMARY__|region-.*)$/i

/** Metadata lists all objects, even hidden ones. So its names are refused, whether or not they exist. */
function checkMetadata(parts: readonly string[], name: string, at: number): void {
  if (!parts.some((part) => METADATA.test(part))) return
  throw refusedTable(name, 'GET …/schema lists what can be read. BigQuery’s own catalogs cannot be read.', at)
}

function otherProject(project: string, name: string, at: number): Error {
  return refusedTable(name, `Write a table as dataset.table; only project ${project} can be read here.`, at)
}

function unknownView(name: string, at: number): Error {
  const hint =
    'An administrator must introspect again; until then read the tables that the view reads, if they are exposed.'
  return refusedTable(name, hint, at)
}
