// What `vitrine` can be asked: one function a verb. Wrong usage is told with the right one, and exit code 2.
import { openapi } from './contract/openapi.ts'
import { ROUTES } from './contract/routes.ts'
import { SESSION_ROUTES } from './contract/session-routes.ts'
import { readConfig } from './config.ts'
import type { Environment } from './config.ts'
import { openStore } from './store/open.ts'

interface Verb {
  readonly about: string
  /** With what stands behind the verb, where it `takes` anything. Answers with an exit code, if not 0. */
  readonly run: (env: Environment, rest: readonly string[]) => Promise<number | void>
  readonly takes?: true
}

const OUT = {
  line: (text: string) => void process.stdout.write(`${text}\n`),
  aside: (text: string) => void process.stderr.write(text),
}

/** docs/operating.md has a heading for each. */
export const VERBS = {
  serve: {
    about: 'starts the service, as npm start does',
    run: async (env) => (await import('./serve.ts')).serve(env),
  },
  migrate: {
    about: 'brings the store to this version, and ends',
    run: async (env) => {
      const config = readConfig(env)
      await using store = await openStore(config)
      process.stdout.write(`The store (${store.dialect}) is at this version.\n`)
    },
  },
  audit: {
    about: 'verify: holds the audit to its chains',
    takes: true,
    run: async (env, rest) => (await import('./audit/command.ts')).runAudit(rest, env, OUT),
  },
  account: {
    about: 'reset-second-factor <e-mail>: removes a second factor whose device is lost',
    takes: true,
    run: async (env, rest) => (await import('./sign-in/account-command.ts')).runAccount(rest, env, OUT),
  },
  openapi: {
    about: 'prints the OpenAPI document',
    run: async () => {
      process.stdout.write(`${JSON.stringify(openapi({ ...ROUTES, ...SESSION_ROUTES }), null, 2)}\n`)
    },
  },
} as const satisfies Record<string, Verb>

const USAGE = `Usage: vitrine VERB

${Object.entries(VERBS)
  .map(([verb, { about }]) => `  ${verb.padEnd(10)} ${about}`)
  .join('\n')}
  ${'--help'.padEnd(10)} prints this
  ${'--version'.padEnd(10)} prints the version

The settings are environment variables: docs/operating.md.
`

/** Runs one verb; answers with the exit code. */
export async function runVerb(argv: readonly string[], env: Environment): Promise<number> {
  const [verb = '--help', ...rest] = argv
  if (verb === '--help' || verb === '-h' || verb === 'help') return say(argv.length === 0 ? 2 : 0, USAGE)
  if (verb === '--version' || verb === '-v') return say(0, `${VERSION}\n`)
  const found = Object.entries<Verb>(VERBS).find(([name]) => name === verb)?.[1]
  if (found === undefined) return say(2, `There is no verb ${JSON.stringify(verb)}.\n\n${USAGE}`)
  if (rest.length > 0 && found.takes !== true)
    return say(2, `${verb} takes nothing after it, not ${JSON.stringify(rest[0])}.\n\n${USAGE}`)
  try {
    const code = await found.run(env, rest)
    if (typeof code === 'number') return code
  } catch (error) {
    return say(1, `${error instanceof Error ? error.message : String(error)}\n`)
  }
  return typeof process.exitCode === 'number' ? process.exitCode : 0
}

/** As in package.json; docs.test.ts holds it. */
export const VERSION = '0.1.0'

function say(code: number, text: string): number {
  const stream = code === 0 ? process.stdout : process.stderr
  stream.write(text)
  return code
}
