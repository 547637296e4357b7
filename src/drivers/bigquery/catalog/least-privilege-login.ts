// Writes commands that create a service account with only the rights that an exposure needs. Vitrine never runs them: a
// person does.
import type { Agreement, AgreementInput, Catalog, CatalogTable } from '../../driver.ts'
import { few } from '../../test-report.ts'

export interface BetterLogin {
  readonly project: string
  readonly billingProject: string
  readonly location: string
  /** The catalog with only the exposed tables. Null if there is no exposure yet. */
  readonly exposed: Catalog | null
  /** The account that Vitrine uses. The new account gets another name. */
  readonly email: string | null
}

export function agreement({ full, exposed, database: project, config }: AgreementInput): Agreement {
  const textOf = (name: string, otherwise: string) => {
    const value = config[name]
    return typeof value === 'string' ? value : otherwise
  }
  const [billingProject, location] = [textOf('billingProject', project), textOf('location', 'US')]
  const columns = new Map(full.tables.map((table) => [`${table.schema}.${table.table}`, table.columns.length]))
  const names = exposed.tables.map((table) => ({ name: `${table.schema}.${table.table}`, shown: table.columns.length }))
  const partly = names.filter(({ name, shown }) => shown < (columns.get(name) ?? 0)).map(({ name }) => name)
  const notes = ['Then set the key of the new account in the connection of this datasource, and delete key.json.']
  if (exposed.tables.some(isFamily))
    notes.push('For a family of shards, the whole dataset is granted, because it will contain the future shards.')
  if (partly.length > 0)
    notes.push(
      `These commands grant whole tables: only this service hides columns of ${few(partly)}. To hide them in BigQuery too, put policy tags on the columns, or grant an authorized view instead of the table.`,
    )
  return { kind: 'GCLOUD', text: betterLogin({ project, billingProject, location, exposed, email: null }), notes }
}

/**
 * The new account gets jobUser on the billing project, metadataViewer on the datasets, and dataViewer on the exposed
 * tables.
 */
export function betterLogin({ project, billingProject, location, exposed, email }: BetterLogin): string {
  const name = email?.startsWith('vitrine-reader@') === true ? 'vitrine-reader-2' : 'vitrine-reader'
  const account = `${name}@${project.replace(/^(.*):(.*)$/, '$2.$1')}.iam.gserviceaccount.com`
  const tables = exposed?.tables ?? []
  const datasets = [...new Set(tables.map(({ schema }) => schema))]
  const sharded = new Set(tables.filter(isFamily).map(({ schema }) => schema))
  const grant = (role: string, kind: string, path: readonly string[]): string => {
    const on = path.map((part) => `\`${part}\``).join('.')
    const sql = `GRANT \`roles/bigquery.${role}\` ON ${kind} ${on} TO "serviceAccount:${account}"`
    return `bq query --project_id=${project} --location=${location} --use_legacy_sql=false '${sql}'`
  }
  return [
    `gcloud iam service-accounts create ${name} --project=${project}`,
    `gcloud projects add-iam-policy-binding ${billingProject} --member=serviceAccount:${account} --role=roles/bigquery.jobUser --condition=None`,
    ...datasets.map((dataset) => grant('metadataViewer', 'SCHEMA', [project, dataset])),
    // The names of future shards are unknown, so for a family the account may read the whole dataset.
    ...[...sharded].map((dataset) => grant('dataViewer', 'SCHEMA', [project, dataset])),
    ...tables
      .filter(({ schema }) => !sharded.has(schema))
      .map(({ schema, table, kind }) =>
        grant('dataViewer', kind.includes('view') ? 'VIEW' : 'TABLE', [project, schema, table]),
      ),
    ...(tables.length === 0
      ? ['# After an exposure is saved, test again: a line for each table then appears here.']
      : []),
    `gcloud iam service-accounts keys create key.json --iam-account=${account}`,
  ].join('\n')
}

/** True if the table stands for dated shards. Its name is `<prefix>*`, which no real table can have. */
function isFamily({ table }: CatalogTable): boolean {
  return table.endsWith('*')
}
