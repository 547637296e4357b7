// Validates the settings of a BigQuery datasource field by field. An error names the field and never repeats its value.
// No request is sent.
import { z } from 'zod'
import { bareHost } from '../../../host-names.ts'
import { AppError, invalidRequest } from '../../../errors.ts'
import { SslMode, wrongHost, wrongSecrets } from '../../connection-fields.ts'
import type { ConnectionSettings, SettingsInput } from '../../driver.ts'
import { readServiceAccount, type ServiceAccount } from './service-account.ts'

/** Used unless a datasource has another address, which the operator must allow. */
export const GOOGLE = 'https://bigquery.googleapis.com'

const KEY = 'serviceAccountKey'
const DATASETS_MAX = 1_000

export interface Allowed {
  /** Datasources may use the identity of the machine (VITRINE_ALLOW_APPLICATION_DEFAULT). */
  readonly applicationDefault: boolean
  /**
   * Datasources may use another address than Google's (VITRINE_ALLOW_BIGQUERY_ENDPOINT). Such an address never gets a
   * token.
   */
  readonly endpoint: boolean
}

/** A service account, the machine itself, or none if the address is not Google's. */
export type Credentials =
  | { readonly kind: 'service account'; readonly account: ServiceAccount }
  | { readonly kind: 'application default' }
  | { readonly kind: 'none' }

/** The address and the identity, computed from the settings for each connection. `credentials` is secret. */
export interface Target {
  readonly endpoint: string
  readonly project: string
  /** The project in which jobs run, and which pays for them. */
  readonly billingProject: string
  /** The location of jobs. Null stands for the location of the datasets, which introspection finds. */
  readonly location: string | null
  /** The datasets to introspect. An empty list stands for all datasets of the project. */
  readonly datasets: readonly string[]
  /** True for an emulator, whose responses may lack fields. */
  readonly emulator: boolean
  readonly credentials: Credentials
}

const projectField = z
  .string({ error: 'must be a string' })
  .regex(/^([a-z0-9-]+(\.[a-z0-9-]+)+:)?[a-z][a-z0-9-]{4,61}[a-z0-9]$/, 'must be a project id')

const Config = z.strictObject({
  location: z
    .string({ error: 'must be a string' })
    .regex(/^[A-Za-z][A-Za-z0-9-]{1,39}$/, 'must be a location such as EU or europe-west1')
    .optional(),
  datasets: z
    .array(z.string({ error: 'must be a string' }).regex(/^\w{1,1024}$/, 'must be a dataset id'), {
      error: 'must be a list of dataset ids',
    })
    .max(DATASETS_MAX, `must be at most ${DATASETS_MAX} datasets`)
    .optional(),
  billingProject: projectField.optional(),
  apiEndpoint: z.string({ error: 'must be a string' }).max(300, 'is too long').optional(),
  emulator: z.boolean({ error: 'must be true or false' }).optional(),
})
type Config = z.infer<typeof Config>

/** Throws AppError INVALID_REQUEST with details. */
export function readSettings(allowed: Allowed, input: SettingsInput): ConnectionSettings {
  const { settings, withheld } = read(allowed, input)
  if (withheld.length > 0) throw invalidRequest(withheld)
  return settings
}

/**
 * `settings` come from readSettings(). Throws AppError DATASOURCE_UNAVAILABLE if the operator no longer allows them.
 */
export function targetOf(allowed: Allowed, settings: ConnectionSettings): Target {
  const { target, withheld } = read(allowed, { ...settings, ...NOT_APPLICABLE })
  if (withheld.length === 0) return target
  throw new AppError(
    'DATASOURCE_UNAVAILABLE',
    `The operator of this service does not allow these settings: ${withheld.join('; ')}.`,
  )
}

const NOT_APPLICABLE = { host: undefined, port: undefined, username: undefined, sslMode: undefined }

interface Read {
  readonly settings: ConnectionSettings
  readonly target: Target
  /** The settings that the operator does not allow. */
  readonly withheld: readonly string[]
}

function read(allowed: Allowed, input: SettingsInput): Read {
  const wrong = wrongSecrets('BIGQUERY', [KEY], input.secrets)
  for (const field of ['host', 'port', 'username'] as const) {
    if (input[field] !== undefined && input[field] !== null) wrong.push(`${field}: does not apply to BIGQUERY`)
  }
  // A valid sslMode is accepted and ignored, because TLS to an https address is always fully verified.
  if (!SslMode.nullish().safeParse(input.sslMode).success) wrong.push('sslMode: does not apply to BIGQUERY')
  const mode = z.enum(['SERVICE_ACCOUNT', 'APPLICATION_DEFAULT']).safeParse(input.connectionMode)
  if (!mode.success) wrong.push('connectionMode: must be SERVICE_ACCOUNT or APPLICATION_DEFAULT')
  const project = projectField.safeParse(input.database)
  if (!project.success) wrong.push(...project.error.issues.map(({ message }) => `database: ${message}`))
  const config = configOf(input.config, wrong)
  const credentials = wrong.length > 0 ? null : credentialsOf(input, mode.data, config, wrong)
  if (!mode.success || !project.success || credentials === null || wrong.length > 0) throw invalidRequest(wrong)
  const key = input.secrets[KEY]
  return {
    settings: {
      connectionMode: mode.data,
      host: null,
      port: null,
      database: project.data,
      username: null,
      sslMode: null,
      config,
      secrets: key === undefined || mode.data !== 'SERVICE_ACCOUNT' ? {} : { [KEY]: key },
    },
    target: {
      endpoint: config.apiEndpoint ?? GOOGLE,
      project: project.data,
      billingProject: config.billingProject ?? project.data,
      location: config.location ?? null,
      datasets: config.datasets ?? [],
      emulator: config.emulator ?? false,
      credentials,
    },
    withheld: withheldOf(allowed, mode.data, config),
  }
}

function withheldOf(allowed: Allowed, mode: string, config: Config): string[] {
  const withheld: string[] = []
  if (mode === 'APPLICATION_DEFAULT' && !allowed.applicationDefault)
    withheld.push('connectionMode: APPLICATION_DEFAULT needs VITRINE_ALLOW_APPLICATION_DEFAULT=1 from the operator')
  for (const field of ['apiEndpoint', 'emulator'] as const) {
    if (config[field] !== undefined && !allowed.endpoint)
      withheld.push(`config.${field}: needs VITRINE_ALLOW_BIGQUERY_ENDPOINT=1 from the operator`)
  }
  return withheld
}

/** An address that is not Google's gets no token. */
function credentialsOf(input: SettingsInput, mode: string | undefined, config: Config, wrong: string[]): Credentials {
  const key = input.secrets[KEY]
  if (mode === 'APPLICATION_DEFAULT') {
    if (key !== undefined) wrong.push(`${KEY}: cannot be combined with APPLICATION_DEFAULT`)
    return config.apiEndpoint === undefined ? { kind: 'application default' } : { kind: 'none' }
  }
  if (key === undefined) {
    if (config.apiEndpoint === undefined) wrong.push(`${KEY}: is required with connectionMode SERVICE_ACCOUNT`)
    return { kind: 'none' }
  }
  const account = readServiceAccount(key)
  if (!('email' in account)) {
    wrong.push(...account)
    return { kind: 'none' }
  }
  return config.apiEndpoint === undefined ? { kind: 'service account', account } : { kind: 'none' }
}

function configOf(config: unknown, wrong: string[]): Config {
  const parsed = Config.safeParse(config ?? {})
  if (!parsed.success) {
    wrong.push(...parsed.error.issues.flatMap(detailsOf))
    return {}
  }
  const { apiEndpoint, emulator, datasets } = parsed.data
  if (new Set(datasets).size < (datasets?.length ?? 0)) wrong.push('config.datasets: contains a dataset twice')
  if (emulator === true && apiEndpoint === undefined)
    wrong.push('config.emulator: is allowed only with config.apiEndpoint')
  if (apiEndpoint === undefined) return parsed.data
  const origin = originOf(apiEndpoint)
  if (origin === null) wrong.push('config.apiEndpoint: must be an origin such as http://127.0.0.1:9050')
  return { ...parsed.data, apiEndpoint: origin ?? apiEndpoint }
}

function detailsOf(issue: z.core.$ZodIssue): string[] {
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => `config.${key.slice(0, 60)}: is not a setting of BIGQUERY`)
  const path = ['config', ...issue.path].join('.')
  return [`${path}: ${issue.path.length === 0 ? 'must be an object' : issue.message}`]
}

/** An address may have only a scheme (http or https), a host and a port. */
function originOf(text: string): string | null {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') return null
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '') return null
  return wrongHost(bareHost(url.hostname)).length === 0 ? url.origin : null
}
