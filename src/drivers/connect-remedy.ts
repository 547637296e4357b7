// Chooses a remedy for a failed connection by the sentence that says why it failed. We write those sentences. An
// unknown sentence gets general advice, so every failed step has a remedy.

const ADDRESS = 'Check the host and port, that the database is running, and that firewalls let this service through.'

const REMEDIES: readonly (readonly [RegExp, string])[] = [
  [/not PostgreSQL|does not answer (?:as|like)/, 'Check the host and port: another service listens there.'],
  [
    /no such host|resolved/,
    'Check host for a typing error, and that its name can be resolved where this service runs.',
  ],
  [/no such database|does not have this database/, 'Check database: its name is case-sensitive.'],
  [
    /offers no TLS|does not offer TLS/,
    'Turn on TLS at the server, or choose sslMode disable if the network is trusted.',
  ],
  [/certificate|TLS/, 'Compare sslMode, host and tlsCa with the server’s certificate.'],
  [/no connection free/, 'Raise the connection limit of the server or the login, or end idle sessions.'],
  [/starting up|does not accept/, 'Wait until the server has started, then test again.'],
  [
    /requires a password|refuses the user name|check the password/,
    'Set username and password again, and try them with another client.',
  ],
  [
    /not connect to that database|rules do not let/,
    'Allow the login to connect from this address: GRANT CONNECT ON DATABASE, and pg_hba.conf.',
  ],
  [/oldest/, 'Upgrade the server to a supported version.'],
  [/private|may not be connected to/, 'An operator can allow private addresses with VITRINE_ALLOW_PRIVATE_HOSTS=1.'],
  [
    /credential|key|account|project|Google|BigQuery/,
    'Check the project, the location and the roles of the service account.',
  ],
  [/login|password|user/, 'Set username and password again, and try them with another client.'],
]

/** The remedy for a sentence; every sentence has one. */
export function connectRemedy(message: string): string {
  return REMEDIES.find(([pattern]) => pattern.test(message))?.[1] ?? ADDRESS
}
