// Reads the attacks and legitimate queries, and compares an answer with the expected one. attacks.json and legit.json
// have a fifth of the cases by which a release is judged.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Attack {
  readonly id: string
  readonly class: string
  readonly sql: string | null
  readonly gen?: Generated
  readonly body_b64?: string
  /** `deny`: QUERY_DENIED. `error`: any refusal or failure. `no-leak`: any answer without a secret. */
  readonly expect: 'deny' | 'error' | 'no-leak'
  readonly alsoOk?: readonly Attack['expect'][]
  readonly leak_regex?: string
  readonly leak_any?: string
  readonly max_rows?: number
}

interface Generated {
  readonly pre: string
  readonly unit: string
  readonly n: number
  readonly mid?: string
  readonly unit2?: string
  readonly n2?: number
  readonly post: string
}

export interface Legit {
  readonly id: string
  readonly sql: string
  /** The query for the role with column GRANTs, if the guard answers more than a GRANT would allow. */
  readonly oracle_sql?: string
  readonly ordered: boolean
}

/** The outcome is `timeout` if the query reached its deadline. */
export interface Received {
  readonly outcome: 'answered' | 'denied' | 'malformed' | 'failed' | 'timeout'
  readonly text: string
  readonly rowCount?: number
}

const read = (name: string): unknown => JSON.parse(readFileSync(join(import.meta.dirname, name), 'utf8'))

export const ATTACKS = read('attacks.json') as readonly Attack[]
export const LEGIT = read('legit.json') as readonly Legit[]
export const FIXTURE = readFileSync(join(import.meta.dirname, 'fixture.sql'), 'utf8')
/** Odd but legal queries of exposed columns. */
export const ODD = readFileSync(join(import.meta.dirname, 'odd.sql'), 'utf8')
  .replace(/^--.*\n/, '')
  .split(/;\n/)
  .filter((sql) => sql !== '')
export const STATE = readFileSync(join(import.meta.dirname, 'state.sql'), 'utf8')
export const EXPOSURE = read('exposure.json') as {
  readonly tables: readonly { readonly schema: string; readonly table: string; readonly columns: string[] | null }[]
}

/** Returns the SQL of an attack, or undefined if the attack is in another part of the request body. */
export function textOf(
  attack: Attack,
  place: { readonly database: string; readonly port: number },
): string | undefined {
  const { gen } = attack
  const made =
    gen && gen.pre + gen.unit.repeat(gen.n) + (gen.mid ?? '') + (gen.unit2 ?? '').repeat(gen.n2 ?? 0) + gen.post
  const sql = made ?? attack.sql ?? undefined
  return sql?.replaceAll('__DB__', place.database).replaceAll('__PGPORT__', String(place.port))
}

const CANARY = /CANARY_[A-Za-z0-9_@.]*|\b9876[5-8]\d{4}\b|root:x:0:0|43414e4152595f[0-9a-f]*|Q0FOQVJZ[\w+/=]*/gi

/** Returns one line for each problem of an answer. */
export function failures(attack: Attack, sql: string, received: Received): string[] {
  const asked = sql.toLowerCase()
  const secrets = (received.text.match(CANARY) ?? []).filter(
    (secret) => received.outcome === 'answered' || !asked.includes(secret.toLowerCase()),
  )
  const leaks = [
    ...new Set(secrets),
    ...(received.outcome === 'answered' && attack.leak_regex !== undefined
      ? (new RegExp(attack.leak_regex).exec(received.text)?.slice(0, 1) ?? [])
      : []),
    ...(attack.leak_any === undefined ? [] : (new RegExp(attack.leak_any).exec(received.text)?.slice(0, 1) ?? [])),
  ].map((secret) => `it says ${secret}`)
  const fitting = [attack.expect, ...(attack.alsoOk ?? [])].some((expected) => fits(received.outcome, expected))
  const tooMany = received.rowCount !== undefined && received.rowCount > (attack.max_rows ?? Number.POSITIVE_INFINITY)
  return [
    ...leaks,
    ...(fitting ? [] : [`expected ${attack.expect}, but it was ${received.outcome}: ${received.text.slice(0, 200)}`]),
    ...(tooMany ? [`${received.rowCount} rows`] : []),
  ]
}

function fits(outcome: Received['outcome'], expected: Attack['expect']): boolean {
  if (expected === 'deny') return outcome === 'denied'
  return expected === 'no-leak' || (outcome !== 'answered' && outcome !== 'timeout')
}
