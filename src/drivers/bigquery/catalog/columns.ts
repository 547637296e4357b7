// The columns of a table for the catalog, with GoogleSQL types, declared keys (BigQuery does not enforce them), and
// signals for partitioning and clustering.
import type { CatalogColumn } from '../../driver.ts'
import type { BigQueryColumnDetail, PseudoColumn } from '../captured-facts.ts'
import type { Field } from '../session/schema-types.ts'
import type { Resource } from './table-resource.ts'

/**
 * Returns the top-level columns, then the pseudo columns. If the names of several columns differ only in case, only the
 * first of these columns is returned.
 */
export function columnsOf(resource: Resource, project: string): readonly CatalogColumn[] {
  const seen = new Set<string>()
  const real = resource.fields.flatMap((field) => {
    const key = field.name.toLowerCase()
    if (field.name === '' || seen.has(key)) return []
    seen.add(key)
    return [columnOf(field, resource, project)]
  })
  return [...real, ...pseudoColumnsOf(resource).map((name) => pseudoColumn(name, resource))]
}

/** A pseudo column can be exposed and hidden like a column, but `SELECT *` does not return it. */
function pseudoColumn(name: PseudoColumn, resource: Resource): CatalogColumn {
  const type = { name: name === '_PARTITIONDATE' ? 'DATE' : 'TIMESTAMP', repeated: false, fields: [] }
  const detail: BigQueryColumnDetail = { type, policyTagged: false }
  const signals = [
    'when the row was loaded: the table is partitioned by it, so a filter on it reads less; not part of *',
  ]
  if (needsFilter(resource)) signals.push('a query must filter on it')
  const rest = { nullable: true, primaryKey: false, references: null, description: null, unexposable: null }
  return { name, type: type.name, ...rest, signals, detail }
}

function columnOf(field: Field, resource: Resource, project: string): CatalogColumn {
  const detail: BigQueryColumnDetail = { type: field.type, policyTagged: field.policyTagged }
  return {
    name: field.name,
    type: field.text,
    nullable: field.nullable,
    primaryKey: resource.tableConstraints?.primaryKey?.columns.includes(field.name) === true,
    references: referenceOf(field.name, resource, project),
    description: field.description,
    unexposable: /[`\\\p{Cc}]/u.test(field.name) ? 'Its name contains characters that no query can write.' : null,
    signals: signalsOf(field.name, resource),
    detail,
  }
}

function referenceOf(column: string, { tableConstraints }: Resource, project: string): CatalogColumn['references'] {
  for (const key of tableConstraints?.foreignKeys ?? []) {
    const reference = key?.columnReferences.find((each) => each.referencingColumn === column)
    if (key === null || reference === undefined || key.referencedTable.projectId !== project) continue
    const { datasetId: schema, tableId: table } = key.referencedTable
    return { schema, table, column: reference.referencedColumn }
  }
  return null
}

function signalsOf(column: string, resource: Resource): readonly string[] {
  const { timePartitioning, rangePartitioning, clustering } = resource
  const signals: string[] = []
  const by = timePartitioning?.field === column ? timePartitioning.type.toLowerCase() : null
  if (by !== null || rangePartitioning?.field === column) {
    signals.push(`the table is partitioned by it${by === null ? '' : `, by ${by}`}: a filter on it reads less`)
    if (needsFilter(resource)) signals.push('a query must filter on it')
  }
  const place = clustering?.fields.indexOf(column) ?? -1
  if (place >= 0) signals.push(`the table is clustered by it (${place + 1} of ${clustering?.fields.length})`)
  return signals
}

export function needsFilter({ requirePartitionFilter, timePartitioning }: Resource): boolean {
  return requirePartitionFilter ?? timePartitioning?.requirePartitionFilter ?? false
}

/** Only a table that is partitioned by ingestion time has pseudo columns. */
export function pseudoColumnsOf({ timePartitioning }: Resource): readonly PseudoColumn[] {
  if (timePartitioning === undefined || timePartitioning.field !== undefined) return []
  return timePartitioning.type === 'DAY' ? ['_PARTITIONTIME', '_PARTITIONDATE'] : ['_PARTITIONTIME']
}
