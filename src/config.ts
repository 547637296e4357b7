// Reads the settings from the environment, once. One error lists all problems. An unknown variable with the prefix
// VITRINE_ is an error, because a typo must not turn a protection off.
import { isIP } from 'node:net'
import { resolve } from 'node:path'
import { bareHost } from './host-names.ts'

export { VERSION } from './contract/version.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/**
 * Limits that the operator sets for all teams (docs/operating.md#settings-of-a-team). `queryBudget` limits the field
 * `limit` of a team's budget.
 */
const CEILINGS = {
  queryBudget: 'VITRINE_MAX_QUERY_BUDGET',
  rowCap: 'VITRINE_MAX_ROW_CAP',
  maxResponseBytes: 'VITRINE_MAX_RESPONSE_BYTES',
  statementTimeoutMs: 'VITRINE_MAX_STATEMENT_TIMEOUT_MS',
  postgresMaxPlanCost: 'VITRINE_MAX_POSTGRES_PLAN_COST',
  mongodbMaxScannedDocuments: 'VITRINE_MAX_MONGODB_SCANNED_DOCUMENTS',
  bigqueryMaxBytes: 'VITRINE_MAX_BIGQUERY_BYTES',
  auditRetentionDays: 'VITRINE_MAX_AUDIT_RETENTION_DAYS',
} as const

export type Ceiling = keyof typeof CEILINGS

/** Longer than the default statement timeout, so that a typical query can finish. */
const GRACE_MS = 20_000
/** A load balancer needs this time to notice that the service is ending. */
const DRAIN_DELAY_MS = 3_000

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const
const SIGNUP = ['open', 'invited', 'closed'] as const

export interface Smtp {
  readonly host: string
  readonly port: number
  /**
   * implicit: TLS from the first byte. required: mail is sent only after STARTTLS. offered: STARTTLS if the server
   * offers it. local: like offered, but with any certificate, because the server is on this machine. none: never TLS.
   */
  readonly tls: 'implicit' | 'required' | 'offered' | 'local' | 'none'
  readonly login: { readonly user: string; readonly password: string } | null
  /** The sender of mails. If null, the login or the public URL determines it. */
  readonly from: string | null
}

export interface ModelSettings {
  readonly kind: 'openai' | 'anthropic'
  /** Absolute, without a trailing slash. */
  readonly url: string
  readonly key: string | null
  readonly name: string
}

export interface Provider {
  readonly id: 'github' | 'google' | 'oidc'
  readonly name: string
  /** The issuer of OpenID Connect, or the web address of GitHub. A subject is unique only within its issuer. */
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string
  /** The default if the provider does not say whether it has verified an e-mail address. */
  readonly trustEmail: boolean
}

export function oidcNameOf({ providers }: Pick<Config, 'providers'>): { readonly oidcName?: string } {
  const oidc = providers.find(({ id }) => id === 'oidc')
  return oidc === undefined ? {} : { oidcName: oidc.name }
}

/** The demo account's e-mail address. Nobody can get mail there, because its domain is reserved (RFC 2606). */
export const DEMO_EMAIL = 'demo@vitrine.example'

export interface Config {
  /** 0 means any free port. */
  readonly port: number
  readonly host: string
  /**
   * True if only this machine can reach the service. Then, by default, anybody may sign up, and private hosts are
   * allowed.
   */
  readonly loopback: boolean
  readonly dataDir: string
  /** An origin without a trailing slash. */
  readonly publicUrl: string | null
  /** The PostgreSQL store, or null for SQLite. Contains a password, so it is never logged. */
  readonly databaseUrl: string | null
  /** The Redis that counts query budgets for several processes. May contain a password, so it is never logged. */
  readonly redisUrl: string | null
  /** 32 bytes. If null, `secretKeyCommand` prints the key, or the key is created once in the data folder. */
  readonly secretKey: Uint8Array | null
  /** Prints the key, for a key management service. */
  readonly secretKeyCommand: string | null
  /** It opens old secrets until the rotation is complete. */
  readonly secretKeyPrevious: Uint8Array | null
  /** If null, links are logged instead of mailed. Contains a password, so it is never logged. */
  readonly smtp: Smtp | null
  /** Contains secrets, so it is never logged. */
  readonly providers: readonly Provider[]
  /** If null, documentation is proposed without a model. Contains a key, so it is never logged. */
  readonly model: ModelSettings | null
  readonly graceMs: number
  readonly demo: boolean
  readonly signup: (typeof SIGNUP)[number]
  readonly allowPrivateHosts: boolean
  readonly allowApplicationDefault: boolean
  /** True if BigQuery datasources may use an endpoint that is not Google's. Such an endpoint gets no token. */
  readonly allowBigQueryEndpoint: boolean
  /**
   * The proxies whose X-Forwarded-For is trusted: none (false), the nearest one (true), or a comma-separated list of
   * addresses and ranges.
   */
  readonly trustProxy: boolean | string
  readonly corsOrigins: ReadonlySet<string>
  /** From the standard variables of OpenTelemetry. Headers may contain a token, so they are never logged. */
  readonly otel: {
    readonly url: string
    readonly headers: Readonly<Record<string, string>>
    readonly serviceName: string
    readonly resource: Readonly<Record<string, string>>
    /** Null means all traces. */
    readonly ratio: number | null
  } | null
  readonly accessLog: boolean
  /** host:port, or null. */
  readonly metricsAddr: string | null
  /** host:port of a separate listener for probes, or null. */
  readonly healthAddr: string | null
  /** How long requests are accepted after SIGTERM, while /health/ready answers 503. */
  readonly drainDelayMs: number
  readonly connectionsMax: number
  readonly connectionsPerAddressMax: number
  readonly ceilings: Readonly<Partial<Record<Ceiling, number>>>
  readonly logLevel: (typeof LOG_LEVELS)[number]
}

const KNOWN: ReadonlySet<string> = new Set([
  'VITRINE_DATA_DIR',
  'VITRINE_PUBLIC_URL',
  'VITRINE_SECRET_KEY',
  'VITRINE_SECRET_KEY_COMMAND',
  'VITRINE_SECRET_KEY_PREVIOUS',
  'VITRINE_DEMO',
  'VITRINE_SIGNUP',
  'VITRINE_ALLOW_PRIVATE_HOSTS',
  'VITRINE_ALLOW_APPLICATION_DEFAULT',
  'VITRINE_ALLOW_BIGQUERY_ENDPOINT',
  'VITRINE_TRUST_PROXY',
  'VITRINE_ACCESS_LOG',
  'VITRINE_CORS_ORIGINS',
  'VITRINE_METRICS_ADDR',
  'VITRINE_HEALTH_ADDR',
  'VITRINE_DRAIN_DELAY_MS',
  'VITRINE_CONNECTIONS',
  'VITRINE_CONNECTIONS_PER_ADDRESS',
  'VITRINE_GRACE_MS',
  'VITRINE_GITHUB_CLIENT_ID',
  'VITRINE_GITHUB_CLIENT_SECRET',
  'VITRINE_GITHUB_URL',
  'VITRINE_GOOGLE_CLIENT_ID',
  'VITRINE_GOOGLE_CLIENT_SECRET',
  'VITRINE_OIDC_ISSUER',
  'VITRINE_OIDC_CLIENT_ID',
  'VITRINE_OIDC_CLIENT_SECRET',
  'VITRINE_OIDC_NAME',
  'VITRINE_OIDC_TRUST_EMAIL',
  'VITRINE_MODEL_URL',
  'VITRINE_MODEL_KEY',
  'VITRINE_MODEL_NAME',
  ...Object.values(CEILINGS),
])

export interface Start {
  readonly demo?: boolean
}

/** Throws one Error that lists all problems and contains no secret. */
export function readConfig(env: Environment, start: Start = {}): Config {
  const problems: string[] = []
  const from = reader(env, problems)
  const host = from.text('HOST') ?? '127.0.0.1'
  const loopback = isLoopback(host)
  const databaseUrl = from.text('DATABASE_URL')
  const databaseProblem = databaseUrl === null ? null : postgresUrlProblem(databaseUrl)
  if (databaseProblem !== null) problems.push(`DATABASE_URL: ${databaseProblem}`)
  const secretKey = from.parsed('VITRINE_SECRET_KEY', '32 bytes in base64', key)
  const secretKeyCommand = from.text('VITRINE_SECRET_KEY_COMMAND')
  if (secretKey !== null && secretKeyCommand !== null) {
    problems.push('VITRINE_SECRET_KEY_COMMAND: contradicts VITRINE_SECRET_KEY. Set one of them')
  }
  if (databaseUrl !== null && secretKeyCommand === null && from.text('VITRINE_SECRET_KEY') === null) {
    problems.push(
      'VITRINE_SECRET_KEY: required with DATABASE_URL (32 bytes in base64, e.g. from: openssl rand -base64 32)',
    )
  }
  const smtp = from.parsed(
    'SMTP_URL',
    'smtp:// or smtps://[user:password@]host[:port][?from=address][&tls=none]',
    smtpUrl,
  )
  const model = modelOf(from, problems)
  const providers = providersOf(from, problems, loopback)
  for (const name of Object.keys(env)) {
    const problem = nameProblem(env, name)
    if (problem !== null) problems.push(`${name}: ${problem}`)
  }
  const config: Config = {
    port: from.parsed('PORT', 'a port from 0 to 65535', integer(0, 65_535)) ?? 3000,
    host,
    loopback,
    dataDir: resolve(from.text('VITRINE_DATA_DIR') ?? 'data'),
    publicUrl: from.parsed('VITRINE_PUBLIC_URL', 'an origin such as https://vitrine.example.com', origin),
    databaseUrl,
    redisUrl: from.parsed(
      'REDIS_URL',
      'redis://[user:password@]host[:port][/database], or rediss:// for TLS',
      redisUrl,
    ),
    secretKey,
    secretKeyCommand,
    secretKeyPrevious: from.parsed('VITRINE_SECRET_KEY_PREVIOUS', '32 bytes in base64', key),
    smtp,
    providers,
    model,
    // The demo is for newcomers. By default, it runs only on loopback, without mail, and with a SQLite store.
    demo: from.flag('VITRINE_DEMO') ?? (start.demo === true && loopback && smtp === null && databaseUrl === null),
    signup: from.oneOf('VITRINE_SIGNUP', SIGNUP) ?? (loopback ? 'open' : 'invited'),
    allowPrivateHosts: from.flag('VITRINE_ALLOW_PRIVATE_HOSTS') ?? loopback,
    allowApplicationDefault: from.flag('VITRINE_ALLOW_APPLICATION_DEFAULT') ?? false,
    allowBigQueryEndpoint: from.flag('VITRINE_ALLOW_BIGQUERY_ENDPOINT') ?? false,
    trustProxy:
      from.parsed('VITRINE_TRUST_PROXY', '0, 1, or addresses and ranges separated by commas', proxies) ?? false,
    corsOrigins:
      from.parsed(
        'VITRINE_CORS_ORIGINS',
        'origins separated by commas, such as https://app.example.com (no *)',
        origins,
      ) ?? new Set(),
    otel: otelOf(from, problems),
    accessLog: from.flag('VITRINE_ACCESS_LOG') ?? false,
    metricsAddr: from.parsed('VITRINE_METRICS_ADDR', 'host:port', address),
    healthAddr: from.parsed('VITRINE_HEALTH_ADDR', 'host:port', address),
    drainDelayMs:
      from.parsed('VITRINE_DRAIN_DELAY_MS', 'milliseconds from 0 to 600000', integer(0, 600_000)) ??
      (loopback ? 0 : DRAIN_DELAY_MS),
    connectionsMax:
      from.parsed('VITRINE_CONNECTIONS', 'a whole number from 16 to 100000', integer(16, 100_000)) ?? 4096,
    connectionsPerAddressMax:
      from.parsed('VITRINE_CONNECTIONS_PER_ADDRESS', 'a whole number from 1 to 100000', integer(1, 100_000)) ?? 1024,
    graceMs: from.parsed('VITRINE_GRACE_MS', 'milliseconds from 0 to 600000', integer(0, 600_000)) ?? GRACE_MS,
    ceilings: ceilings(from),
    logLevel: from.oneOf('LOG_LEVEL', LOG_LEVELS) ?? 'info',
  }
  problems.push(...contradictions(config))
  if (problems.length > 0) throw new Error(`The environment is not valid:\n${problems.map((p) => `  ${p}`).join('\n')}`)
  return config
}

function contradictions(config: Config): readonly string[] {
  const problems: string[] = []
  const sides = [
    ['VITRINE_METRICS_ADDR', config.metricsAddr],
    ['VITRINE_HEALTH_ADDR', config.healthAddr],
  ] as const
  for (const [name, address] of sides) {
    const [, host = '', port = ''] = /^(.*):(\d+)$/.exec(address ?? '') ?? []
    const isShared = host === config.host || [host, config.host].some((each) => /^(?:0\.0\.0\.0|\[?::\]?)$/.test(each))
    if (config.port !== 0 && Number(port) === config.port && isShared) {
      problems.push(`${name}: is the address of the API (HOST and PORT). Choose another port`)
    }
  }
  const { secretKey, secretKeyPrevious } = config
  if (secretKey !== null && secretKeyPrevious !== null && Buffer.from(secretKey).equals(secretKeyPrevious)) {
    problems.push('VITRINE_SECRET_KEY_PREVIOUS: equals VITRINE_SECRET_KEY. Set the other key, or remove it')
  }
  return problems
}

/** A variable with a name similar to one of these, such as SMTPURL, is probably a misspelled setting. */
const SPELLED: ReadonlyMap<string, string> = new Map(
  ['DATABASE_URL', 'SMTP_URL', 'REDIS_URL'].map((name) => [plain(name), name]),
)

function nameProblem(env: Environment, name: string): string | null {
  if (KNOWN.has(name)) return null
  if (name.startsWith('VITRINE_')) return `unknown setting in this version${meant(nearestOf(name))}`
  if (/^vitrine_?[a-z]/i.test(name)) return `unknown setting. Names are in capitals${meant(nearestOf(name))}`
  const spelled = SPELLED.get(plain(name))
  if (spelled === undefined || spelled === name || env[spelled] !== undefined || !env[name]?.trim()) return null
  return `unknown setting${meant(spelled)}`
}

function meant(name: string | undefined): string {
  return name === undefined ? '' : `. Did you mean ${name}?`
}

function nearestOf(name: string): string | undefined {
  const bare = plain(name).replace(/^VITRINE/, '')
  return [...KNOWN, 'PORT', 'HOST', 'DATABASE_URL', 'SMTP_URL', 'REDIS_URL', 'LOG_LEVEL'].find(
    (known) => plain(known).replace(/^VITRINE/, '') === bare,
  )
}

function plain(name: string): string {
  return name.replaceAll('_', '').toUpperCase()
}

type Reader = ReturnType<typeof reader>

function reader(env: Environment, problems: string[]) {
  /** An empty variable counts as unset, because Compose files pass such variables. */
  const text = (name: string): string | null => env[name]?.trim() || null
  const parsed = <T>(name: string, what: string, parse: (text: string) => T | null): T | null => {
    const given = text(name)
    if (given === null) return null
    const value = parse(given)
    if (value === null) problems.push(`${name}: must be ${what}`)
    return value
  }
  const oneOf = <T extends string>(name: string, allowed: readonly T[]): T | null =>
    parsed(name, `one of ${allowed.join(', ')}`, (given) => allowed.find((value) => value === given) ?? null)
  const flag = (name: string): boolean | null => {
    const value = oneOf(name, ['0', '1'])
    return value === null ? null : value === '1'
  }
  return { text, parsed, oneOf, flag }
}

function ceilings(from: Reader): Partial<Record<Ceiling, number>> {
  const found: Partial<Record<Ceiling, number>> = {}
  const read = (ceiling: Ceiling) => {
    const value = from.parsed(CEILINGS[ceiling], 'a whole number from 1', integer(1, Number.MAX_SAFE_INTEGER))
    if (value !== null) found[ceiling] = value
  }
  read('queryBudget')
  read('rowCap')
  read('maxResponseBytes')
  read('statementTimeoutMs')
  read('postgresMaxPlanCost')
  read('mongodbMaxScannedDocuments')
  read('bigqueryMaxBytes')
  read('auditRetentionDays')
  return found
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}

const integer = (min: number, max: number) => (text: string) => {
  const value = /^\d{1,16}$/.test(text) ? Number(text) : NaN
  return value >= min && value <= max ? value : null
}

function origin(text: string): string | null {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol)) return null
  const bare =
    url.pathname === '/' && url.search === '' && url.hash === '' && url.username === '' && url.password === ''
  return bare ? url.origin : null
}

function origins(text: string): ReadonlySet<string> | null {
  const parts = text.split(',').map((part) => origin(part.trim()))
  const known = parts.filter((part) => part !== null)
  return known.length === parts.length ? new Set(known) : null
}

/** See opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables. */
function otelOf(from: Reader, problems: string[]): Config['otel'] {
  const of = (name: string) => from.text(`OTEL_EXPORTER_OTLP_TRACES_${name}`) ?? from.text(`OTEL_EXPORTER_OTLP_${name}`)
  const own = from.text('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT')
  const shared = from.text('OTEL_EXPORTER_OTLP_ENDPOINT')
  const isOff = from.text('OTEL_SDK_DISABLED')?.toLowerCase() === 'true' || from.text('OTEL_TRACES_EXPORTER') === 'none'
  const url = own ?? (shared === null ? null : `${shared.replace(/\/+$/, '')}/v1/traces`)
  if (url === null || isOff) return null
  if (!/^https?:$/.test(URL.parse(url)?.protocol ?? '')) {
    problems.push('OTEL_EXPORTER_OTLP_ENDPOINT: must be an address such as http://collector:4318')
  }
  if ((of('PROTOCOL') ?? 'http/json') !== 'http/json') {
    problems.push('OTEL_EXPORTER_OTLP_PROTOCOL: must be http/json, the only protocol here (port 4318 of a collector)')
  }
  const asked = from.text('OTEL_TRACES_SAMPLER')?.includes('traceidratio') === true
  const share = Number(from.text('OTEL_TRACES_SAMPLER_ARG') ?? '1')
  if (asked && !(share >= 0 && share <= 1)) problems.push('OTEL_TRACES_SAMPLER_ARG: must be a number from 0 to 1')
  const resource = pairsOf(from.text('OTEL_RESOURCE_ATTRIBUTES'))
  return {
    url,
    headers: pairsOf(of('HEADERS')),
    serviceName: from.text('OTEL_SERVICE_NAME') ?? resource['service.name'] ?? 'vitrine',
    resource,
    ratio: asked ? share : null,
  }
}

/** Invalid pairs are left out, as in the standard. */
function pairsOf(text: string | null): Readonly<Record<string, string>> {
  const pairs = (text ?? '').split(',').flatMap((pair) => {
    const at = pair.indexOf('=')
    if (at <= 0) return []
    try {
      return [[pair.slice(0, at).trim(), decodeURIComponent(pair.slice(at + 1).trim())] as const]
    } catch {
      return []
    }
  })
  return Object.fromEntries(pairs)
}

/** Does not repeat any part of the URL that may contain the password. */
function postgresUrlProblem(text: string): string | null {
  const example = 'postgres://user:password@host:5432/database'
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(text)?.[1]?.toLowerCase()
  if (scheme !== 'postgres' && scheme !== 'postgresql') {
    return scheme === undefined || !/^[a-z0-9+.-]+:\/\//i.test(text)
      ? `must begin with postgres://, as in ${example}`
      : `must begin with postgres://, not ${scheme}://. Vitrine keeps its store in PostgreSQL or, without DATABASE_URL, in a file`
  }
  // Without the slashes, the library would read login and password as the database name.
  if (!/^postgres(ql)?:\/\//i.test(text)) return `must have two slashes after postgres:, as in ${example}`
  const port = /^[^/]*\/\/(?:[^/?#]*@)?(?:\[[^\]]*\]|[^:/?#@]*):([^/?#@]*)(?:[/?#]|$)/.exec(text)?.[1]
  if (port !== undefined && port !== '' && integer(1, 65_535)(port) === null) {
    return 'has a port that is not a number from 1 to 65535. If this is a part of the password, percent-encode its special characters (: is %3A, / is %2F, # is %23, @ is %40)'
  }
  if (/^[^/]*\/\/[^/?#]*@(?:[:/?#]|$)/.test(text)) return `has no host after the @, as in ${example}`
  return URL.parse(text) === null
    ? `cannot be read as an address. Percent-encode special characters in user and password (: is %3A, / is %2F, # is %23, @ is %40), as in ${example}`
    : null
}

function redisUrl(text: string): string | null {
  const url = URL.parse(text)
  if (url === null || !/^rediss?:$/.test(url.protocol) || url.hostname === '') return null
  return /^\/?\d{0,4}$/.test(url.pathname) && url.search === '' && url.hash === '' ? text : null
}

/** Refuses unknown parameters: if a misspelled one were ignored, TLS might be off. */
function smtpUrl(text: string): Smtp | null {
  const url = URL.parse(text)
  if (url === null || !/^smtps?:$/.test(url.protocol) || url.hostname === '') return null
  if (!/^\/?$/.test(url.pathname) || url.hash !== '') return null
  const { from, tls, ...others } = Object.fromEntries(url.searchParams)
  const login = smtpLogin(url)
  if (login === undefined || Object.keys(others).length > 0) return null
  if (from !== undefined && !/^[^\s<>@,;:"]+@[^\s<>@,;:"]+$/.test(from)) return null
  if (tls !== undefined && (tls !== 'none' || url.protocol === 'smtps:')) return null
  const host = bareHost(url.hostname)
  const implicit = url.protocol === 'smtps:'
  // By default, a password leaves this machine only over TLS. The operator can change this with tls=none.
  const upgrade = isLoopback(host) ? 'local' : login === null ? 'offered' : 'required'
  return {
    host,
    port: url.port === '' ? (implicit ? 465 : 587) : Number(url.port),
    tls: implicit ? 'implicit' : tls === 'none' ? 'none' : upgrade,
    login,
    from: from ?? null,
  }
}

/** URL and name must be both set or both missing, because an operator would not notice an incomplete configuration. */
function modelOf(from: Reader, problems: string[]): ModelSettings | null {
  const url = from.parsed(
    'VITRINE_MODEL_URL',
    'https://host[/path] (http:// to this machine, or without a VITRINE_MODEL_KEY)',
    modelUrl,
  )
  const key = from.parsed('VITRINE_MODEL_KEY', 'a key in printable ASCII', (text) =>
    /^[\x21-\x7e]{1,4096}$/.test(text) ? text : null,
  )
  const name = from.parsed('VITRINE_MODEL_NAME', 'the name of a model', (text) =>
    /^[\x21-\x7e]{1,200}$/.test(text) ? text : null,
  )
  if (from.text('VITRINE_MODEL_URL') === null) {
    if (key !== null || name !== null) problems.push('VITRINE_MODEL_URL: required with VITRINE_MODEL_KEY or _NAME')
    return null
  }
  if (from.text('VITRINE_MODEL_NAME') === null) problems.push('VITRINE_MODEL_NAME: required with VITRINE_MODEL_URL')
  if (url === null || name === null) return null
  const { protocol, hostname, pathname } = url
  if (protocol === 'http:' && key !== null && !isLoopback(bareHost(hostname))) {
    problems.push('VITRINE_MODEL_URL: must be https:// if VITRINE_MODEL_KEY is sent to another machine')
  }
  const kind =
    /(?:^|\.)anthropic\.com$/.test(hostname) || pathname.split('/').includes('anthropic') ? 'anthropic' : 'openai'
  return { kind, url: url.origin + pathname.replace(/\/+$/, ''), key, name }
}

/** A provider sends people back to the public URL, so a service that is not on loopback needs one. */
function providersOf(from: Reader, problems: string[], loopback: boolean): readonly Provider[] {
  const found = [gitHubOf(from, problems), googleOf(from, problems), oidcOf(from, problems)].filter(
    (each) => each !== null,
  )
  const [first] = found
  if (first !== undefined && !loopback && from.text('VITRINE_PUBLIC_URL') === null) {
    problems.push(
      `VITRINE_PUBLIC_URL: required with VITRINE_${first.id.toUpperCase()}_CLIENT_ID, because ${first.name} sends people back to it`,
    )
  }
  return found
}

function gitHubOf(from: Reader, problems: string[]): Provider | null {
  const url = from.parsed('VITRINE_GITHUB_URL', 'an origin such as https://github.example.com', providerOrigin)
  const client = clientOf(from, problems, 'GITHUB', ['_URL'])
  return client && { id: 'github', name: 'GitHub', issuer: url ?? 'https://github.com', ...client, trustEmail: false }
}

function googleOf(from: Reader, problems: string[]): Provider | null {
  const client = clientOf(from, problems, 'GOOGLE', [])
  return client && { id: 'google', name: 'Google', issuer: 'https://accounts.google.com', ...client, trustEmail: false }
}

function oidcOf(from: Reader, problems: string[]): Provider | null {
  const issuer = from.parsed(
    'VITRINE_OIDC_ISSUER',
    'the issuer of an OpenID Connect provider, https://host[/path] (http:// to this machine)',
    issuerUrl,
  )
  const name = from.parsed('VITRINE_OIDC_NAME', 'a name of 1 to 40 printable characters', (text) =>
    /^[^\p{C}\p{Zl}\p{Zp}]{1,40}$/u.test(text) ? text : null,
  )
  const trustEmail = from.flag('VITRINE_OIDC_TRUST_EMAIL') ?? false
  const client = clientOf(from, problems, 'OIDC', ['_ISSUER', '_NAME', '_TRUST_EMAIL'])
  if (client !== null && from.text('VITRINE_OIDC_ISSUER') === null) {
    problems.push('VITRINE_OIDC_ISSUER: required with VITRINE_OIDC_CLIENT_ID')
  }
  if (client === null || issuer === null) return null
  return { id: 'oidc', name: name ?? 'single sign-on', issuer, ...client, trustEmail }
}

/** Returns null if no variable is set, or if a required one is wrong. `more` has the suffixes of optional variables. */
function clientOf(
  from: Reader,
  problems: string[],
  provider: string,
  more: readonly string[],
): Pick<Provider, 'clientId' | 'clientSecret'> | null {
  const prefix = `VITRINE_${provider}`
  const [idName, secretName] = [`${prefix}_CLIENT_ID`, `${prefix}_CLIENT_SECRET`]
  const ascii = (text: string) => (/^[\x21-\x7e]{1,1000}$/.test(text) ? text : null)
  const clientId = from.parsed(idName, 'printable ASCII', ascii)
  const clientSecret = from.parsed(secretName, 'printable ASCII', ascii)
  const given = [idName, secretName, ...more.map((end) => prefix + end)].find((name) => from.text(name) !== null)
  if (given === undefined) return null
  for (const name of [idName, secretName]) {
    if (from.text(name) === null) problems.push(`${name}: required with ${given}`)
  }
  return clientId === null || clientSecret === null ? null : { clientId, clientSecret }
}

function providerUrl(text: string): URL | null {
  const url = URL.parse(text)
  if (url === null || url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') return null
  const isLocal = url.protocol === 'http:' && isLoopback(bareHost(url.hostname))
  return url.protocol === 'https:' || isLocal ? url : null
}

function providerOrigin(text: string): string | null {
  const url = providerUrl(text)
  return url === null || url.pathname !== '/' ? null : url.origin
}

/** Returns the text unchanged, because issuers are compared character by character. Null if it is no valid URL. */
function issuerUrl(text: string): string | null {
  return providerUrl(text) === null ? null : text
}

function modelUrl(text: string): URL | null {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol)) return null
  return url.search === '' && url.hash === '' && url.username === '' && url.password === '' ? url : null
}

/** Returns null if the URL has no login, and undefined if the login is incomplete or has a wrong encoding. */
function smtpLogin(url: URL): Smtp['login'] | undefined {
  if (url.username === '' && url.password === '') return null
  if (url.username === '' || url.password === '') return undefined
  try {
    return { user: decodeURIComponent(url.username), password: decodeURIComponent(url.password) }
  } catch {
    return undefined
  }
}

/** 32 bytes in base64. */
export const KEY_TEXT = /^[A-Za-z0-9+/]{43}=?$/

function key(text: string): Uint8Array | null {
  const bytes = Buffer.from(text, 'base64')
  return KEY_TEXT.test(text) && bytes.length === 32 ? new Uint8Array(bytes) : null
}

function proxies(text: string): boolean | string | null {
  if (text === '0') return false
  if (text === '1') return true
  const parts = text.split(',').map((part) => part.trim())
  const known = parts.every((part) => /^(loopback|linklocal|uniquelocal)$/.test(part) || isRange(part))
  return known ? parts.join(',') : null
}

function isRange(text: string): boolean {
  const [host = '', bits, ...rest] = text.split('/')
  const family = isIP(host)
  if (family === 0 || rest.length > 0) return false
  return bits === undefined || integer(0, family === 4 ? 32 : 128)(bits) !== null
}

function address(text: string): string | null {
  const url = URL.parse(`http://${text}`)
  return url !== null && url.host !== '' && url.pathname === '/' && /:\d+$/.test(text) ? text : null
}
