// `vitrine audit verify` only reads the store, and does not migrate it.
import { sql, type Transaction } from 'kysely'
import { readConfig, type Environment } from '../config.ts'
import { openSecrets, requireKnownKeyOf } from '../secrets.ts'
import { openStore, type Store } from '../store/open.ts'
import type { Tables } from '../store/tables.ts'
import { sealWith } from './chain/seal.ts'
import { BEFORE_CHAINS, verifyAudit, type ChainReport } from './chain/verify-chains.ts'

interface Out {
  line(text: string): void
  /** Prints progress and errors. */
  aside(text: string): void
}

const AUDIT_USAGE = `Usage: vitrine audit verify

Reads the whole audit and checks every row against the chain of the process that wrote it. Prints one line per chain, and
names the first row that was changed, removed or inserted. Uses the settings of the service (VITRINE_DATA_DIR, or
DATABASE_URL and VITRINE_SECRET_KEY). See docs/audit.md.

Exit code: 0 all chains hold; 1 a chain does not hold; 2 the audit could not be checked.

With DATABASE_URL, the service may be running. Only one process at a time can open the embedded store: stop the service
first, or verify a copy of its data folder.
`

const [HOLDS, BROKEN, UNKNOWN] = [0, 1, 2]
const PROGRESS_MS = 3_000

export async function runAudit(args: readonly string[], env: Environment, out: Out): Promise<number> {
  const [what, ...rest] = args
  if (what === '--help' || what === '-h' || (what === 'verify' && /^(--help|-h)$/.test(rest[0] ?? ''))) {
    out.line(AUDIT_USAGE.trimEnd())
    return HOLDS
  }
  if (what !== 'verify' || rest.length > 0) {
    const wrong = what === 'verify' ? rest[0] : what
    out.aside(
      `${wrong === undefined ? 'A subcommand is missing.' : `Unknown argument ${JSON.stringify(wrong)}.`}\n\n${AUDIT_USAGE}`,
    )
    return UNKNOWN
  }
  try {
    return await verify(env, out)
  } catch (error) {
    out.aside(`${error instanceof Error ? error.message : String(error)}\n`)
    return UNKNOWN
  }
}

async function verify(env: Environment, out: Out): Promise<number> {
  const config = readConfig(env)
  await using store = await openStore(config, { asIs: true })
  await requireKnownKeyOf(store, config)
  const secrets = await openSecrets(config, { asIs: true, db: store.db })
  const seal = sealWith(secrets.derive('audit chain'))
  return await oneState(store, async (tx) => {
    const seen = progress(await rowsIn(tx), out)
    let [chains, broken, uncovered] = [0, 0, 0]
    for await (const report of verifyAudit(tx, seal, seen)) {
      chains++
      if (report.finding !== null) broken++
      if (report.chain === BEFORE_CHAINS) uncovered += report.rows
      out.line(sentence(report))
    }
    if (chains === 0) out.line('The audit is empty.')
    else if (broken > 0) out.line(`The audit does not hold: see ${broken} of the ${chains} lines above.`)
    else if (uncovered > 0) out.line(`The audit holds, except for ${count(uncovered)} rows that no chain covers.`)
    else out.line('The audit holds.')
    return broken === 0 ? HOLDS : BROKEN
  })
}

async function rowsIn(tx: Transaction<Tables>): Promise<number> {
  const { single } = await tx
    .selectFrom('audit')
    .select(({ fn }) => fn.countAll<number>().as('single'))
    .executeTakeFirstOrThrow()
  const { packed } = await tx
    .selectFrom('audit_packs')
    .select(sql<number | null>`sum(last_seq - first_seq + 1)`.as('packed'))
    .executeTakeFirstOrThrow()
  // PostgreSQL returns the sum of bigints as numeric, which arrives as a string.
  return Number(single) + Number(packed)
}

/** Reads a snapshot, so that the service can write at the same time. */
function oneState<T>(store: Store, work: (tx: Transaction<Tables>) => Promise<T>): Promise<T> {
  const transaction = store.db.transaction()
  return store.dialect === 'sqlite'
    ? transaction.execute(work)
    : transaction.setIsolationLevel('repeatable read').setAccessMode('read only').execute(work)
}

function progress(total: number, out: Out): (rows: number) => void {
  let done = 0
  let reportedAt = performance.now()
  return (rows) => {
    done += rows
    if (performance.now() - reportedAt < PROGRESS_MS) return
    reportedAt = performance.now()
    out.aside(`${count(done)} of ${count(total)} rows checked\n`)
  }
}

function sentence(report: ChainReport): string {
  const { chain, number, rows, pruned, prunedUntil, head, finding, openedAt } = report
  const name =
    number === 0 ? chain || 'the chains' : `chain ${number}${chain === '' ? '' : ` (${chain}, begun ${openedAt})`}`
  if (finding !== null) return `${name}: DOES NOT HOLD: ${finding.what}`
  const parts = [
    `${count(rows)} ${rows === 1 ? 'row' : 'rows'}`,
    ...(pruned === 0 ? [] : [`${count(pruned)} removed by retention, up to ${prunedUntil}`]),
    ...(head === null ? [] : [`ends at number ${head.seq}, ${head.link}`]),
  ]
  const holds = head === null ? WITHOUT_CHAIN[chain] : 'holds'
  return `${name}: ${holds ?? 'holds'}: ${parts.join('; ')}`
}

const WITHOUT_CHAIN: Readonly<Record<string, string>> = {
  'not linked yet': 'written by this service',
  [BEFORE_CHAINS]: 'not covered',
}

function count(value: number): string {
  return value.toLocaleString('en')
}
