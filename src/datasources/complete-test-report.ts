// Adds ids, form fields and remedies to the driver's report of a connection test.
import type { TestField, TestReport, TestStep } from '../drivers/driver.ts'
import type { DatasourceType } from '../drivers/datasource-type.ts'

type RemedyKind = 'SQL' | 'MONGO' | 'GCLOUD' | 'TEXT'

interface ToldStep extends TestStep {
  /** The name of the step with hyphens instead of spaces. It must never change. */
  readonly id: string
  readonly field: TestField | null
  readonly remedyId: string | null
  readonly remedyKind: RemedyKind | null
}

export interface ToldReport extends Omit<TestReport, 'steps'> {
  readonly steps: readonly ToldStep[]
  readonly remedies: Readonly<Record<string, string>>
  /** ISO 8601, in UTC. */
  readonly testedAt: string
}

/** The form field to correct, by id of the step. Steps about the whole server have no field. */
const FIELDS: Readonly<Record<string, TestField>> = {
  tls: 'sslMode',
  superuser: 'username',
  writes: 'username',
  ownership: 'username',
  'row-security': 'username',
  roles: 'username',
  creates: 'username',
  'temporary-files': 'username',
  grants: 'username',
  login: 'username',
  'other-databases': 'username',
  collections: 'username',
}

/** The login to BigQuery is a service account. */
const BIGQUERY_FIELDS: Readonly<Record<string, TestField>> = {
  connection: 'connectionMode',
  datasets: 'database',
  queries: 'serviceAccountKey',
  writes: 'serviceAccountKey',
  tables: 'serviceAccountKey',
  'other-datasets': 'serviceAccountKey',
}

export function toldReport(type: DatasourceType, report: TestReport, testedAt: string): ToldReport {
  const ids = new Map<string, string>()
  const fields = type === 'BIGQUERY' ? BIGQUERY_FIELDS : FIELDS
  const steps = report.steps.map((step): ToldStep => {
    const id = step.name.replaceAll(' ', '-')
    const field = step.field === undefined ? (fields[id] ?? null) : step.field
    if (step.remedy === null) return { ...step, id, field, remedyId: null, remedyKind: null }
    const remedyId = ids.get(step.remedy) ?? id
    ids.set(step.remedy, remedyId)
    return { ...step, id, field, remedyId, remedyKind: kindOf(type, step.remedy) }
  })
  const remedies = Object.fromEntries([...ids].map(([text, id]) => [id, text]))
  return { ...report, steps, remedies, testedAt }
}

/** Distinguishes commands, such as `GRANT SELECT …`, from sentences. */
const COMMANDS: Readonly<Record<DatasourceType, readonly [RegExp, RemedyKind]>> = {
  POSTGRES: [/^(?:ALTER|CREATE|DROP|GRANT|REVOKE) [A-Z]/, 'SQL'],
  MONGODB: [/^(?:use |db\.)/, 'MONGO'],
  BIGQUERY: [/^(?:gcloud|bq) /, 'GCLOUD'],
}

function kindOf(type: DatasourceType, remedy: string): RemedyKind {
  const [pattern, kind] = COMMANDS[type]
  return pattern.test(remedy) ? kind : 'TEXT'
}
