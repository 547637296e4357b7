// What to do where a connection did not come about, by the sentence that says why. The sentences are ours; one that is not
// here gets the general advice, so no failed step is without a remedy.

const ADDRESS = 'Check host and port, that the database runs there, and that firewalls let this service through.'

const REMEDIES: readonly (readonly [RegExp, string])[] = [
  [/no PostgreSQL|does not answer as/, 'Check host and port: another service listens there.'],
  [
    /no such host|resolved/,
    'Check host for a typing error, and that its name can be resolved where this service runs.',
  ],
  [/no such database/, 'Check database: its name is case-sensitive.'],
  [/offers no TLS/, 'Switch TLS on at the server, or choose sslMode disable where the network is trusted.'],
  [/certificate|TLS/, 'Check sslMode, host and tlsCa against the certificate of the server.'],
  [/no connection free/, 'Raise the connection limit of the server or the login, or end idle sessions.'],
  [/starting up|does not accept/, 'Wait until the server has started, then test again.'],
  [
    /asks for a password|refuses the user name|check the password/,
    'Set username and password anew, and try them with another client.',
  ],
  [
    /not connect to that database|rules do not let/,
    'Let the login in from this address: GRANT CONNECT ON DATABASE, and pg_hba.conf.',
  ],
  [/oldest/, 'Upgrade the server to a version that is served.'],
  [/private|may not be connected to/, 'An operator can allow private addresses with VITRINE_ALLOW_PRIVATE_HOSTS=1.'],
  [
    /credential|key|account|project|Google|BigQuery/,
    'Check the project, the location and the roles of the service account.',
  ],
  [/login|password|user/, 'Set username and password anew, and try them with another client.'],
]

/** A remedy for each sentence. */
export function connectRemedy(message: string): string {
  return REMEDIES.find(([pattern]) => pattern.test(message))?.[1] ?? ADDRESS
}
