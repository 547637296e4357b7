// Grades the credentials of a project. They should have the rights to read the exposed tables, and no other rights. If
// a right is missing, unnecessary or unknown, the step has commands for a better service account. Grading changes
// nothing: it only lists and reads datasets, and does dry runs.
import type { Catalog, TestStep } from '../../driver.ts'
import { few, pass, warn } from '../../test-report.ts'
import { mapConcurrently } from '../session/abortable.ts'
import { dryRun, type Place } from '../session/dry-run.ts'
import { accessFailure } from '../session/failure.ts'
import { ErrorResponse } from '../session/error-response.ts'
import type { Rest } from '../session/rest.ts'
import { GOOGLE, type Target } from '../session/settings.ts'
import { betterLogin } from './least-privilege-login.ts'
import { findDatasets, listDatasets, type Dataset } from './datasets.ts'

const AT_ONCE = 8
/** The maximum number of datasets, and the maximum number of tables, for which rights are tested. */
const TRIED_MAX = 10
const LISTED_MAX = 100

interface Facts {
  readonly rest: Rest
  readonly target: Target
  readonly exposed: Catalog | null
  readonly datasets: readonly Dataset[]
  readonly place: Place
  readonly better: string
  readonly signal: AbortSignal
}

export interface Grade {
  readonly steps: readonly TestStep[]
  /** How long it took to list the datasets, in milliseconds. */
  readonly latencyMs: number
}

/** The steps have a fixed order. Throws the errors of Rest.json(), Rest.signIn() and findDatasets(). */
export async function grade(rest: Rest, target: Target, exposed: Catalog | null, signal: AbortSignal): Promise<Grade> {
  await rest.signIn(signal)
  const began = performance.now()
  const visible = await listDatasets(rest, target.project, LISTED_MAX, signal)
  const latencyMs = performance.now() - began
  const { datasets, location } = await findDatasets(rest, target, signal)
  const place = { billingProject: target.billingProject, location }
  const { credentials } = target
  const email = credentials.kind === 'service account' ? credentials.account.email : null
  const better = betterLogin({
    project: target.project,
    billingProject: target.billingProject,
    location,
    exposed,
    email,
  })
  const facts: Facts = { rest, target, exposed, datasets, place, better, signal }
  const steps = [connection(facts), found(facts)]
  const queries = await mayQuery(facts)
  steps.push(queries)
  if (queries.status !== 'FAIL') steps.push(await writes(facts), await reads(facts))
  steps.push(beyond(facts, visible))
  return { steps, latencyMs }
}

function connection({ target: { project, credentials, endpoint } }: Facts): TestStep {
  switch (credentials.kind) {
    case 'service account':
      return pass('connection', `Signed in to the project ${project} as ${credentials.account.email}.`)
    case 'application default':
      return warn(
        'connection',
        `Signed in to the project ${project} as the machine that this service runs on.`,
        'Use a separate service account: connectionMode SERVICE_ACCOUNT.',
      )
    case 'none':
      return warn(
        'connection',
        `Reached the project ${project} at ${endpoint}, without credentials.`,
        `Only for tests and emulators. To use ${GOOGLE}, remove config.apiEndpoint.`,
      )
    default:
      return credentials satisfies never
  }
}

function found({ datasets, place, target }: Facts): TestStep {
  const name = 'datasets'
  if (datasets.length > 0) {
    return pass(name, `${datasets.length} datasets in ${place.location}: ${few(datasets.map(({ id }) => id))}.`)
  }
  const where = target.location === null ? '' : ` in ${target.location}`
  return warn(
    name,
    `The credentials see no dataset of ${target.project}${where}.`,
    `Give the credentials roles/bigquery.metadataViewer on the datasets, or change the fields database and config.location.`,
  )
}

async function mayQuery({ rest, place, signal, better }: Facts): Promise<TestStep> {
  const name = 'queries'
  try {
    await dryRun(rest, place, { text: 'SELECT 1', params: null }, signal)
    return pass(name, `Queries may run in the project ${place.billingProject}.`)
  } catch (error) {
    signal.throwIfAborted()
    const failed = error instanceof ErrorResponse ? accessFailure(error) : null
    if (failed?.code !== 'DATASOURCE_UNAVAILABLE') throw error
    return { name, status: 'FAIL', message: failed.message, remedy: better }
  }
}

/**
 * Tests by dry runs whether the credentials may create a table in the first datasets. If BigQuery created the table
 * after all, the table would expire within the hour.
 */
async function writes({ rest, target, datasets, place, better, signal }: Facts): Promise<TestStep> {
  const name = 'writes'
  if (target.emulator) return pass(name, 'Not tested: an emulator may create the table instead of doing a dry run.')
  const tried = datasets.slice(0, TRIED_MAX)
  const verdicts = await mapConcurrently(tried, AT_ONCE, signal, async ({ id }, ended) => {
    const table = `\`${target.project}.${id}.vitrine_write_check\``
    const expires = 'expiration_timestamp = TIMESTAMP_ADD(CURRENT_TIMESTAMP(), INTERVAL 1 HOUR)'
    return await isAllowed(rest, place, `CREATE TABLE ${table} (x INT64) OPTIONS (${expires})`, ended)
  })
  const names = (verdict: boolean | null): string[] =>
    tried.filter((_, n) => verdicts[n] === verdict).map(({ id }) => id)
  const [writable, unknown] = [names(true), names(null)]
  if (writable.length > 0) return warn(name, `The credentials may create tables in ${few(writable)}.`, better)
  if (unknown.length > 0) {
    return warn(name, `It is unknown whether the credentials may create tables in ${few(unknown)}.`, better)
  }
  return pass(name, `The credentials may not create tables${limitOf(datasets, 'in', 'datasets')}.`)
}

/** Tests by dry runs, which read nothing, whether the credentials may read the first exposed tables. */
async function reads({ rest, target, exposed, place, better, signal }: Facts): Promise<TestStep> {
  const name = 'tables'
  if (exposed === null)
    return pass(name, 'The rights were not compared with the exposure, because no table is exposed yet.')
  const tried = exposed.tables.slice(0, TRIED_MAX)
  const verdicts = await mapConcurrently(tried, AT_ONCE, signal, ({ schema, table }, ended) =>
    isAllowed(rest, place, `SELECT COUNT(*) FROM \`${target.project}.${schema}.${table}\``, ended),
  )
  const tables = (verdict: boolean | null): string[] =>
    tried.filter((_, n) => verdicts[n] === verdict).map(({ schema, table }) => `${schema}.${table}`)
  const [missing, unknown] = [tables(false), tables(null)]
  if (missing.length > 0) return warn(name, `The credentials may not read ${few(missing)}, which is exposed.`, better)
  if (unknown.length > 0) {
    return warn(name, `It is unknown whether the credentials may read ${few(unknown)}, which is exposed.`, better)
  }
  return pass(name, `The credentials may read what is exposed${limitOf(exposed.tables, 'tested for', 'tables')}.`)
}

/** Returns for example ` (in the first 10 of 12 datasets)`, or '' if all were tested. */
function limitOf(all: readonly unknown[], how: string, what: string): string {
  return all.length > TRIED_MAX ? ` (${how} the first ${TRIED_MAX} of ${all.length} ${what})` : ''
}

/** Does a dry run. Returns null if BigQuery refuses it for another reason than missing rights. */
async function isAllowed(rest: Rest, place: Place, text: string, signal: AbortSignal): Promise<boolean | null> {
  try {
    await dryRun(rest, place, { text, params: null }, signal)
    return true
  } catch (error) {
    signal.throwIfAborted()
    if (!(error instanceof ErrorResponse)) throw error
    return error.reason === 'accessDenied' ? false : null
  }
}

function beyond({ exposed, target, better }: Facts, visible: readonly string[]): TestStep {
  const name = 'other datasets'
  const used = new Set([...target.datasets, ...(exposed?.tables.map(({ schema }) => schema) ?? [])])
  const others = visible.filter((id) => !used.has(id))
  if (used.size === 0 || others.length === 0) return pass(name, 'The credentials see no other dataset.')
  return pass(name, `The credentials also see ${few(others)}; only Vitrine hides their tables.`, better)
}
