// Says how to mend a failed connection, and which field of the datasource may be wrong. This depends on the sentence
// that describes the failure, which the service always writes itself. For an unknown sentence there is general advice.
import type { TestField } from './driver.ts'

const ADDRESS = 'Check the host and port, that the database is running, and that firewalls let this service through.'

const REMEDIES: readonly (readonly [RegExp, string, TestField | null])[] = [
  [
    /^The SSH server presents the host key/,
    'Ask the operator of the SSH server whether its key changed: ssh-keyscan HOST | ssh-keygen -lf - prints it. If it did, set config.ssh.hostKey to the new one. If it did not, somebody may be intercepting the connection.',
    'config.ssh.hostKey',
  ],
  [
    /^The SSH (?:server refuses the user name|private key)/,
    'Check config.ssh.username, sshPrivateKey and sshPassphrase, or sshPassword, with ssh from another machine.',
    'sshPrivateKey',
  ],
  [
    /^The SSH server refuses to connect/,
    'Check host and port as the SSH server sees them, and AllowTcpForwarding and PermitOpen in its sshd_config.',
    'host',
  ],
  [
    /^The SSH server/,
    'Check config.ssh.host and config.ssh.port, that sshd runs there, and that firewalls let this service through.',
    'config.ssh.host',
  ],
  [/not PostgreSQL|does not answer (?:as|like)/, 'Check the host and port: another service listens there.', 'port'],
  [
    /no such host|resolved/,
    'Check host for a typing error, and that its name can be resolved where this service runs.',
    'host',
  ],
  [/no such database|does not have this database/, 'Check database: its name is case-sensitive.', 'database'],
  [
    /offers no TLS|does not offer TLS/,
    'Turn on TLS at the server, or choose sslMode disable if the network is trusted.',
    'sslMode',
  ],
  [/certificate/, 'Compare sslMode, host and tlsCa with the server’s certificate.', 'tlsCa'],
  [/TLS/, 'Compare sslMode, host and tlsCa with the server’s certificate.', 'sslMode'],
  [/no free connection/, 'Raise the connection limit of the server or the login, or end idle sessions.', null],
  [/starting up|does not accept/, 'Wait until the server has started, then test again.', null],
  [
    /requires a password|refuses the user name|check the password/,
    'Set username and password again, and try them with another client.',
    'password',
  ],
  [
    /not connect to that database|rules do not allow/,
    'Allow the login to connect from this address: GRANT CONNECT ON DATABASE, and pg_hba.conf.',
    'username',
  ],
  [/oldest/, 'Upgrade the server to a supported version.', null],
  [
    /private|may not be connected to/,
    'An operator can allow private addresses with VITRINE_ALLOW_PRIVATE_HOSTS=1.',
    'host',
  ],
  [
    /credential|key|account|project|Google|BigQuery/,
    'Check the project, the location and the roles of the service account.',
    'serviceAccountKey',
  ],
  [/login|password|user/, 'Set username and password again, and try them with another client.', 'username'],
]

export function connectRemedy(message: string): string {
  return REMEDIES.find(([pattern]) => pattern.test(message))?.[1] ?? ADDRESS
}

/** Returns the field that may be wrong, or null if no field is wrong. Returns `host` for an unknown sentence. */
export function connectField(message: string): TestField | null {
  const known = REMEDIES.find(([pattern]) => pattern.test(message))
  return known === undefined ? 'host' : known[2]
}
