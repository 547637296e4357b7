// Explains why the database of DATABASE_URL cannot be used. The text may contain the host, database and user, but never
// the password or the server's message.

/** The server and database as the client library reads them from DATABASE_URL. */
export interface Place {
  readonly host: string
  readonly port: number
  readonly user: string
  readonly database: string
}

/** Returns null if the reason is unknown. */
export function storeFailure(error: unknown, { host, port, user, database }: Place): string | null {
  if (!(error instanceof Error)) return null
  const server = `${host}:${port}`
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  switch (code) {
    case '28P01':
      return `${server} refuses the password of the user ${user}. Correct the password; percent-encode special characters in it.`
    case '28000':
      return notAdmitted(error.message, server, user)
    case '3D000':
      return `There is no database ${database} at ${server}. Create it (CREATE DATABASE ${quoted(database)}), or correct the name.`
    case '42501':
      return `The user ${user} may not use the database ${database}. Make the user its owner (ALTER DATABASE ${quoted(database)} OWNER TO ${quoted(user)}).`
    case '25006':
      return `The database ${database} at ${server} is read-only. Name the primary server, not a standby.`
    case '53300':
      return `${server} has no connection left. Raise its max_connections, or end other clients.`
    case '57P03':
      return `${server} is starting up or shutting down. Try again when it accepts connections.`
    case 'ECONNREFUSED':
      return `Nothing listens at ${server}. Start PostgreSQL there, or correct host and port.`
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `The host name ${host} cannot be resolved. Correct it, or check the name server of this machine.`
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
    case 'ETIMEDOUT':
      return `${server} cannot be reached from this machine. Check the network and its firewalls.`
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return `The TLS certificate of ${server} is for another host name. Use a host name that the certificate lists.`
    case 'CERT_HAS_EXPIRED':
      return `The TLS certificate of ${server} has expired. Renew it on the server.`
    case 'ENOENT':
      return host.startsWith('/')
        ? `There is no PostgreSQL socket in ${host}. Start PostgreSQL there, or correct the folder.`
        : 'A certificate file named in DATABASE_URL does not exist. Correct sslrootcert, sslcert or sslkey.'
    case 'ECONNRESET':
    case 'EPIPE':
    case 'EPROTO':
      return notPostgres(server)
    default:
      if (UNTRUSTED.has(code)) return untrusted(server)
      return code === '' ? byText(error.message, server, user) : null
  }
}

const UNTRUSTED: ReadonlySet<string> = new Set([
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'CERT_UNTRUSTED',
])

function untrusted(server: string): string {
  return `The TLS certificate of ${server} comes from an authority that this machine does not trust. Add &sslrootcert=/path/to/ca.pem.`
}

/**
 * Explains the error 28000. In every language, the message contains `pg_hba.conf` if no line of this file matches.
 * Otherwise the user does not exist, or may not log in.
 */
function notAdmitted(message: string, server: string, user: string): string {
  if (!message.includes('pg_hba.conf')) {
    return `${server} does not admit the user ${user}. Create the user with LOGIN, or correct the name.`
  }
  return `${server} does not admit the user ${user} from this machine. Add ?sslmode=verify-full if the server requires TLS; otherwise add a line to its pg_hba.conf.`
}

function byText(message: string, server: string, user: string): string | null {
  if (message.includes('does not support SSL')) {
    return `${server} has no TLS, but sslmode requires TLS. Turn on TLS on the server, or set sslmode=disable if the network is trusted.`
  }
  if (message.includes('password must be a'))
    return `${server} requires a password for the user ${user}. Add the password.`
  if (/timeout/i.test(message)) return `${server} did not answer in time. Check host, port and firewalls.`
  if (/terminated|SSL connection|Unrecognized|unexpected/i.test(message)) {
    return notPostgres(server)
  }
  return null
}

function notPostgres(server: string): string {
  return `${server} is not a PostgreSQL server. Correct host and port.`
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
