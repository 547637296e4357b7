// Pure: completes a driver's test report for programs and people. Adds a stable id, the related form field and the kind
// of remedy to each step, and collects the different remedies in one list.
import type { TestField, TestReport, TestStep } from '../drivers/driver.ts'
import type { DatasourceType } from '../drivers/datasource-type.ts'

type RemedyKind = 'SQL' | 'MONGO' | 'GCLOUD' | 'TEXT'

interface ToldStep extends TestStep {
  /** The name with hyphens instead of spaces. It never changes. */
  readonly id: string
  readonly field: TestField | null
  /** The key of the remedy in `remedies`. Steps with the same remedy have the same key. */
  readonly remedyId: string | null
  readonly remedyKind: RemedyKind | null
}

export interface ToldReport extends Omit<TestReport, 'steps'> {
  readonly steps: readonly ToldStep[]
  readonly remedies: Readonly<Record<string, string>>
  /** ISO 8601, UTC. */
  readonly testedAt: string
}

/** The field that a step is about, by the step's id. Steps about the server as a whole have no field. */
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

/** Like FIELDS, for BigQuery, whose login is a service account. */
const BIGQUERY_FIELDS: Readonly<Record<string, TestField>> = {
  connection: 'connectionMode',
  datasets: 'database',
  queries: 'serviceAccountKey',
  writes: 'serviceAccountKey',
  tables: 'serviceAccountKey',
  'other-datasets': 'serviceAccountKey',
}

export function toldReport(type: DatasourceType, report: TestReport, testedAt: string): ToldReport {
  /** Ids by text of the remedy: the id of the first step that has the remedy. */
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

/** Commands match the pattern of their kind of database, and sentences do not. */
const COMMANDS: Readonly<Record<DatasourceType, readonly [RegExp, RemedyKind]>> = {
  POSTGRES: [/^(?:ALTER|CREATE|DROP|GRANT|REVOKE) [A-Z]/, 'SQL'],
  MONGODB: [/^(?:use |db\.)/, 'MONGO'],
  BIGQUERY: [/^(?:gcloud|bq) /, 'GCLOUD'],
}

function kindOf(type: DatasourceType, remedy: string): RemedyKind {
  const [pattern, kind] = COMMANDS[type]
  return pattern.test(remedy) ? kind : 'TEXT'
}
