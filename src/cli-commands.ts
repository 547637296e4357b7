// The verbs of `vitrine`. After wrong usage, prints the usage and returns the exit code 2.
import { openapi } from './contract/openapi.ts'
import { ROUTES } from './contract/key-routes.ts'
import { SESSION_ROUTES } from './contract/signed-in-routes.ts'
import { readConfig, VERSION } from './config.ts'
import type { Environment } from './config.ts'
import { openStore } from './store/open.ts'

interface Verb {
  readonly about: string
  /** Returns the exit code, or nothing to use process.exitCode or 0. `rest` is empty unless `takes` is true. */
  readonly run: (env: Environment, rest: readonly string[]) => Promise<number | void>
  readonly takes?: true
}

const OUT = {
  line: (text: string) => void process.stdout.write(`${text}\n`),
  aside: (text: string) => void process.stderr.write(text),
}

/** docs/operating.md has a heading for each verb. */
export const VERBS = {
  demo: {
    about: 'starts the service with a demo shop to try it; the default VERB',
    run: async (env) => (await import('./serve.ts')).serve(env, { demo: true }),
  },
  serve: {
    about: 'starts the service',
    run: async (env) => (await import('./serve.ts')).serve(env),
  },
  migrate: {
    about: 'migrates the store to this version, and exits',
    run: async (env) => {
      const config = readConfig(env)
      await using store = await openStore(config)
      process.stdout.write(`The store (${store.dialect}) is migrated to this version of Vitrine.\n`)
    },
  },
  audit: {
    about: 'verify: checks the audit against its chains',
    takes: true,
    run: async (env, rest) => (await import('./audit/verify-command.ts')).runAudit(rest, env, OUT),
  },
  account: {
    about: 'reset-second-factor <e-mail>: removes a second factor whose device is lost',
    takes: true,
    run: async (env, rest) => (await import('./sign-in/account-command.ts')).runAccount(rest, env, OUT),
  },
  backup: {
    about: 'FILE: writes a copy of the store to a new file, while the service may run',
    takes: true,
    run: async (env, rest) => (await import('./upkeep/backup.ts')).runBackup(rest, env, OUT),
  },
  restore: {
    about: 'FILE: reads a copy into an empty store',
    takes: true,
    run: async (env, rest) => (await import('./upkeep/backup.ts')).runRestore(rest, env, OUT),
  },
  export: {
    about: 'FILE: the same as backup; the file can be imported into either kind of store',
    takes: true,
    run: async (env, rest) => (await import('./upkeep/backup.ts')).runBackup(rest, env, OUT),
  },
  import: {
    about: 'FILE: the same as restore',
    takes: true,
    run: async (env, rest) => (await import('./upkeep/backup.ts')).runRestore(rest, env, OUT),
  },
  doctor: {
    about: 'checks the settings, the store, the root key and the machine',
    takes: true,
    run: async (env, rest) => (await import('./upkeep/doctor.ts')).runDoctor(rest, env, OUT),
  },
  secrets: {
    about: 'rotate: seals all secrets with a new root key',
    takes: true,
    run: async (env, rest) => (await import('./upkeep/rotate-root-key.ts')).runSecrets(rest, env, OUT),
  },
  openapi: {
    about: 'prints the OpenAPI document',
    run: async () => {
      process.stdout.write(`${JSON.stringify(openapi({ ...ROUTES, ...SESSION_ROUTES }), null, 2)}\n`)
    },
  },
} as const satisfies Record<string, Verb>

const USAGE = `Usage: vitrine [VERB]

${Object.entries(VERBS)
  .map(([verb, { about }]) => `  ${verb.padEnd(10)} ${about}`)
  .join('\n')}
  ${'--help'.padEnd(10)} prints this help
  ${'--version'.padEnd(10)} prints the version

The settings are environment variables. See docs/operating.md.
`

export async function runVerb(argv: readonly string[], env: Environment): Promise<number> {
  const [verb = 'demo', ...rest] = argv
  if (verb === '--help' || verb === '-h' || verb === 'help') return print(0, USAGE)
  if (verb === '--version' || verb === '-v') return print(0, `${VERSION}\n`)
  const found = Object.entries<Verb>(VERBS).find(([name]) => name === verb)?.[1]
  if (found === undefined) return print(2, `Unknown verb ${JSON.stringify(verb)}.\n\n${USAGE}`)
  if (rest.length > 0 && found.takes !== true)
    return print(2, `${verb} takes no arguments, not ${JSON.stringify(rest[0])}.\n\n${USAGE}`)
  try {
    const code = await found.run(env, rest)
    if (typeof code === 'number') return code
  } catch (error) {
    return print(1, `${error instanceof Error ? error.message : String(error)}\n`)
  }
  return typeof process.exitCode === 'number' ? process.exitCode : 0
}

function print(code: number, text: string): number {
  const stream = code === 0 ? process.stdout : process.stderr
  stream.write(text)
  return code
}
