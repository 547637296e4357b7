// `vitrine doctor` prints one line per check, and for each problem what to do. It changes nothing.
import { statfs } from 'node:fs/promises'
import { existsSync, statSync } from 'node:fs'
import { connect } from 'node:net'
import { once } from 'node:events'
import { join } from 'node:path'
import { sql } from 'kysely'
import { newestTime } from '../audit/reading/newest-rows.ts'
import { readConfig, type Config, type Environment } from '../config.ts'
import { keyPath, openSecrets, previousKeyPath, requireKeyBefore } from '../secrets.ts'
import { openStore, type Store } from '../store/open.ts'

interface Out {
  line(text: string): void
}

type Grade = 'PASS' | 'WARN' | 'FAIL'
type Report = (grade: Grade, text: string) => void

const FREE_BYTES_MIN = 1 << 30
const PROBE_MS = 5_000
/** If the newest audit row is this far in the future, the clock of the machine is probably wrong. */
const CLOCK_MS = 300_000

/** Returns the exit status: 1 if a check failed, otherwise 0. */
export async function runDoctor(args: readonly string[], env: Environment, out: Out): Promise<number> {
  if (args.length > 0) throw new Error('Usage: vitrine doctor')
  let failed = false
  const report: Report = (grade, text) => {
    failed ||= grade === 'FAIL'
    out.line(`${grade}  ${text}`)
  }
  let config: Config
  try {
    config = readConfig(env)
  } catch (error) {
    report('FAIL', messageOf(error))
    return 1
  }
  report('PASS', 'The environment is valid.')
  settings(config, report)
  await disk(config, report)
  await store(config, report)
  await servers(config, report)
  return failed ? 1 : 0
}

function settings(config: Config, report: Report): void {
  if (!config.loopback && config.publicUrl === null)
    report('WARN', 'VITRINE_PUBLIC_URL is not set: links in mails start with the address of this machine.')
  if (!config.loopback && config.publicUrl !== null && config.publicUrl.startsWith('http:'))
    report('WARN', 'VITRINE_PUBLIC_URL is http://: keys and passwords travel in the clear. Serve it over https.')
  if (!config.loopback && config.smtp === null)
    report('WARN', 'SMTP_URL is not set: links for verification and password reset go to the log.')
  if (!config.loopback && config.allowPrivateHosts)
    report('WARN', 'VITRINE_ALLOW_PRIVATE_HOSTS=1: managers can connect datasources to every address of this network.')
  if (!config.loopback && config.healthAddr === null)
    report('WARN', 'VITRINE_HEALTH_ADDR is not set: probes share the connections of the API.')
}

async function disk({ dataDir, databaseUrl }: Config, report: Report): Promise<void> {
  if (databaseUrl !== null) return
  if (!existsSync(dataDir))
    return report('WARN', `The data folder ${dataDir} does not exist. The first start creates it.`)
  const mode = statSync(dataDir).mode & 0o777
  if ((mode & 0o077) !== 0)
    report('WARN', `Other users may enter the data folder ${dataDir} (mode ${mode.toString(8)}). Run chmod 700 on it.`)
  const { bavail, bsize } = await statfs(dataDir)
  const free = bavail * bsize
  if (free < FREE_BYTES_MIN)
    report('WARN', `The disk of the data folder has ${Math.floor(free / 1e6)} MB left. Free space.`)
  else report('PASS', `The disk of the data folder has ${Math.floor(free / 1e9)} GB left.`)
}

async function store(config: Config, report: Report): Promise<void> {
  if (config.databaseUrl === null && !existsSync(join(config.dataDir, 'vitrine.db')))
    return report('WARN', `There is no store in ${config.dataDir} yet. The first start creates it.`)
  try {
    await using opened = await openStore(config, { asIs: true, admit: (db) => requireKeyBefore(db, config) })
    report(
      'PASS',
      `The store (${opened.dialect}) opens, has the schema of this version of Vitrine, and belongs to the root key.`,
    )
    await integrity(opened, report)
    await secrets(opened, config, report)
    await clock(opened, report)
  } catch (error) {
    report('FAIL', messageOf(error))
  }
}

async function integrity(opened: Store, report: Report): Promise<void> {
  if (opened.dialect === 'sqlite') {
    const { rows } = await sql<{ quick_check: string }>`pragma quick_check(1)`.execute(opened.db)
    const sound = rows[0]?.quick_check === 'ok'
    return report(
      sound ? 'PASS' : 'FAIL',
      sound
        ? 'The file of the store is not damaged.'
        : 'The file of the store is damaged. Restore it from a backup (vitrine restore).',
    )
  }
  const { rows } = await sql<{ version: number; connections: number; synchronous: string }>`
    select current_setting('server_version_num')::int as version, current_setting('max_connections')::int as connections,
      current_setting('synchronous_commit') as synchronous
  `.execute(opened.db)
  const [server] = rows
  if (server === undefined) return
  const { version, connections, synchronous } = server
  report(
    version >= 140_000 ? 'PASS' : 'FAIL',
    `The store is on PostgreSQL ${Math.floor(version / 10_000)}. Vitrine needs 14 or newer.`,
  )
  if (connections < 50) report('WARN', `max_connections is ${connections}. Each process uses up to 17 connections.`)
  if (synchronous === 'off')
    report('FAIL', 'synchronous_commit is off: a crash of the database loses answered changes. Set it to on.')
}

async function secrets(opened: Store, config: Config, report: Report): Promise<void> {
  const keys = await openSecrets(config, { asIs: true, db: opened.db })
  const ofDatasources = await opened.db
    .selectFrom('datasource_secrets')
    .innerJoin('datasources', 'datasources.id', 'datasource_secrets.datasource_id')
    .select(['datasource_id as id', 'team_id', 'field', 'sealed'])
    .execute()
  const webhooks = await opened.db.selectFrom('webhooks').selectAll().execute()
  const rows = [
    ...ofDatasources,
    ...webhooks.flatMap(({ id, team_id, sealed_url, sealed_secret }) => [
      { id, team_id, field: 'webhook url', sealed: sealed_url },
      { id, team_id, field: 'webhook secret', sealed: sealed_secret },
    ]),
  ]
  let [closed, old] = [0, 0]
  for (const { id: datasourceId, team_id: teamId, field, sealed } of rows) {
    if (!keys.isCurrent(sealed)) old++
    try {
      keys.open({ teamId, datasourceId, field }, sealed)
    } catch {
      closed++
    }
  }
  if (closed > 0)
    report(
      'FAIL',
      `${closed} of ${rows.length} secrets cannot be opened with the current keys. Send them again with PATCH.`,
    )
  else report('PASS', `All ${rows.length} secrets of datasources and webhooks can be opened.`)
  const rotating = config.secretKeyPrevious !== null || existsSync(previousKeyPath(config.dataDir))
  if (old > 0) report('WARN', `${old} secrets are sealed with the previous key. Run vitrine secrets rotate.`)
  else if (rotating)
    report(
      'WARN',
      'Two root keys are set, but no secret needs the previous one. Run vitrine secrets rotate, then remove it.',
    )
  if (config.secretKey === null && config.secretKeyCommand === null)
    report(
      'WARN',
      `The root key is in ${keyPath(config.dataDir)}, beside the store. A backup of the folder contains both.`,
    )
}

async function clock(opened: Store, report: Report): Promise<void> {
  const at = await newestTime(opened)
  if (at === null || at - Date.now() < CLOCK_MS)
    return report('PASS', 'The clock is not behind the newest row of the store.')
  report(
    'FAIL',
    `The newest audit row is from ${new Date(at).toISOString()}, which is in the future. Correct the clock of this machine before you start the service.`,
  )
}

async function servers(config: Config, report: Report): Promise<void> {
  const redis = config.redisUrl === null ? null : URL.parse(config.redisUrl)
  const asked = [
    ...(config.smtp === null ? [] : [['SMTP_URL', config.smtp.host, config.smtp.port] as const]),
    ...(redis === null ? [] : [['REDIS_URL', redis.hostname, Number(redis.port || '6379')] as const]),
  ]
  for (const [name, host, port] of asked) {
    const reached = await isReached(host, port)
    report(
      reached ? 'PASS' : 'FAIL',
      reached
        ? `The server of ${name} accepts connections.`
        : `The server of ${name} does not accept connections at ${host}:${port}. Correct the address, or start the server.`,
    )
  }
}

async function isReached(host: string, port: number): Promise<boolean> {
  const socket = connect({ host, port })
  const signal = AbortSignal.timeout(PROBE_MS)
  try {
    await once(socket, 'connect', { signal })
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
