// Grades a login: warns of privileges that are not needed to read the exposed collections. A warning has the commands
// for a better login. Nothing in the database is changed.
import type { Catalog, TestStep } from '../../driver.ts'
import { few, pass, warn } from '../../test-report.ts'
import type { Login } from '../session/connect.ts'
import { betterLogin } from './least-privilege-login.ts'
import { privilegesOf, type Privilege, type Privileges } from './privileges.ts'

interface Facts extends Privileges {
  readonly login: Login
  readonly exposed: Catalog | null
  readonly better: string
}

/** Actions that may change or end something in the database. All other actions only read. */
const WRITES =
  /^(insert|update|remove|drop|create|grant|revoke|convertTo|rename|collMod|compact|reIndex|enable|bypass|change|set|applyOps|fsync|shutdown|kill|repl|resync|add|move|split|refine|reshard|clearJumbo|unlock|evict|rotate|internal|anyAction|impersonate|import|export|flush|cpu|closeAll|dbAdmin|emptycapped|restore|storageDetails|touch|validate|writeOrigin|advance|cleanup|invalidate|oidReset|fle)/i
/** Actions that do no harm. Every MongoDB login may have them. */
const HARMLESS = new Set(['killCursors', 'killAnyCursor', 'changeOwnPassword', 'changeOwnCustomData'])
/** MongoDB's own databases. */
const OWN = new Set(['admin', 'config', 'local'])

/**
 * Returns the steps of the report in a fixed order. The privileges should cover exactly the catalog `exposed`, which is
 * null if there is no exposure yet.
 */
export async function grade(login: Login, exposed: Catalog | null, signal: AbortSignal): Promise<TestStep[]> {
  const privileges = await privilegesOf(login.db, signal)
  const better = betterLogin({ user: privileges.user?.user ?? null, database: login.database, exposed })
  const facts: Facts = { ...privileges, login, exposed, better }
  return judges.map((judge) => judge(facts))
}

const judges: readonly ((facts: Facts) => TestStep)[] = [
  function connection({ login }) {
    return pass('connection', `Connected to the database ${login.database}.`)
  },
  function serverVersion({ login }) {
    const [major] = login.serverVersion
    if (major >= 6) return pass('server version', `The server is MongoDB ${login.versionText}.`)
    const message = `The server is MongoDB ${login.versionText}: stages and operators that it does not support are refused.`
    return warn('server version', message, 'Upgrade the server to MongoDB 6.0 or newer.')
  },
  function tls({ login }) {
    if (login.sslMode !== 'disable') return pass('tls', 'The connection is encrypted.')
    if (login.isLocal) return pass('tls', 'The connection is not encrypted; it does not leave this machine.')
    return warn(
      'tls',
      'The connection is not encrypted: documents cross the network in plain text.',
      'Set sslMode to verify-full, and tlsCa to the certificate authority that signed the server’s certificate.',
    )
  },
  function loginStep({ user, better }) {
    if (user !== null) return pass('login', `Logged in as ${user.user} of ${user.db}.`)
    return warn(
      'login',
      'There is no login: the server requires none, so the database does not restrict this service.',
      better,
    )
  },
  function writes({ user, privileges, better }) {
    if (user === null) return warn('writes', 'Without a login, anyone who can connect can write everything.', better)
    const where = privileges.filter((each) => each.actions.some(isWriting)).map(placeOf)
    if (where.length === 0) return pass('writes', 'The login cannot change anything.')
    return warn('writes', `The login can write or change settings in ${few([...new Set(where)])}.`, better)
  },
  function otherDatabases({ user, privileges, login, better }) {
    const name = 'other databases'
    if (user === null) return warn(name, 'Without a login, anyone who can connect can read every database.', better)
    const others = privileges.filter(isReading).filter(({ resource }) => resource.db !== login.database)
    const where = [...new Set(others.filter(({ resource }) => !isOwnCorner(resource)).map(placeOf))]
    if (where.length === 0) return pass(name, 'The login cannot read any other database.')
    return warn(name, `The login can also read ${few(where)}.`, better)
  },
  function collections(facts) {
    const name = 'collections'
    const { exposed } = facts
    if (exposed === null)
      return pass(name, 'Nothing is exposed yet, so there is nothing to compare the privileges with.')
    if (facts.user === null)
      return warn(name, 'Without a login, only this service hides collections that are not exposed.', facts.better)
    const shown = exposed.tables.map((table) => table.table)
    const missing = shown.filter((collection) => !mayRead(facts, collection))
    if (missing.length > 0) return warn(name, `The login cannot read ${few(missing)}, which is exposed.`, facts.better)
    const beyond = facts.privileges.filter(isReading).filter(({ resource }) => {
      return resource.db === facts.login.database && !shown.includes(resource.collection ?? '') && !isSystem(resource)
    })
    if (beyond.length === 0 && !facts.privileges.some(({ resource }) => resource.anyResource === true))
      return pass(name, 'The login can read the exposed collections and nothing else in the database.')
    return pass(
      name,
      'The login can read collections that are not exposed; only this service hides them.',
      facts.better,
    )
  },
]

function isWriting(action: string): boolean {
  return WRITES.test(action) && !HARMLESS.has(action)
}

function isReading({ actions }: Privilege): boolean {
  return actions.includes('find') || actions.includes('anyAction')
}

function isSystem(resource: Privilege['resource']): boolean {
  return resource.collection?.startsWith('system.') === true
}

/** True for the internal collections in MongoDB's built-in roles, which contain no data of a team. */
function isOwnCorner(resource: Privilege['resource']): boolean {
  return isSystem(resource) || (OWN.has(resource.db ?? '') && (resource.collection ?? '') !== '')
}

function mayRead({ privileges, login }: Facts, collection: string): boolean {
  return privileges.some((each) => {
    const { db, collection: named, anyResource } = each.resource
    const fits = (db === '' || db === login.database) && (named === '' || named === collection)
    return isReading(each) && (anyResource === true || fits)
  })
}

function placeOf({ resource }: Privilege): string {
  if (resource.anyResource === true || resource.cluster === true) return 'the whole server'
  const db = resource.db ?? ''
  const collection = resource.collection ?? ''
  if (db === '') return collection === '' ? 'every database' : `${collection} of every database`
  return collection === '' ? db : `${db}.${collection}`
}
