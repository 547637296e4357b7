// Makes mutants of queries, and gives the printed SQL of each accepted mutant to Google's analyzer. The printed SQL may
// name nothing hidden. Its rows may not depend on hidden data, and must equal the rows of the mutant itself on tables
// without hidden data.
import { unseal } from '../../../src/drivers/confined.ts'
import type { Catalog, Denied, Limits, Malformed, Verdict } from '../../../src/drivers/driver.ts'
import { confine } from '../../../src/drivers/bigquery/guard/confine.ts'
import type { BigQueryQuery } from '../../../src/drivers/bigquery/confined-query.ts'
import { Engine, languageOptions } from '../../engines/bigquery/engine.ts'
import { openZetasql, ZetasqlError } from '../../engines/bigquery/zetasql.ts'
import { catalogOf } from './catalog.ts'
import { QueryMaker } from './random-query.ts'
import { strays } from './check-printed.ts'
import { CUT, isHidden, OTHER_WORLD, shownOf, WORLD } from './sample-project.ts'

export interface Tally {
  mutants: number
  confined: number
  /** Confined mutants whose printed SQL the analyzer accepts, so that its report was checked. */
  judged: number
  /** Judged mutants with pipe syntax. The analyzer gets an equivalent sub-query for each pipe. */
  pipes: number
  /** Judged mutants with a repeatable result. Their printed SQL ran twice, with different hidden data. */
  run: number
  /** Judged mutants that also ran unchanged, on tables without hidden data. */
  compared: number
  /**
   * Refused mutants that Google's engine can run on exposed data. One refused mutant in ten is tried. The refusal may
   * be intended.
   */
  strict: Record<string, { count: number; shortest: string }>
  /** Accepted mutants that the analyzer cannot judge, because it is a version of 2023. They are counted by reason. */
  beyond: Record<string, number>
  readonly leaks: string[]
  readonly crashes: string[]
  readonly differs: string[]
  /** Mutants that Google's parser accepts, although it refuses their printed SQL. */
  readonly broken: string[]
}

const LIMITS: Limits = { rowCap: 1000, maxResponseBytes: 8 << 20, timeoutMs: 15_000, maxCost: 1 << 30 }

interface Judges {
  readonly world: Engine
  readonly other: Engine
  readonly cut: Engine
  readonly catalog: Catalog
}

/** Throws NoSuchEngine. */
export async function fuzz(seed: number, count: number, tell: (tally: Tally) => void = () => undefined): Promise<Tally> {
  await using zetasql = await openZetasql()
  const language = await languageOptions(zetasql)
  const engine = (tables: ConstructorParameters<typeof Engine>[3]) => new Engine(zetasql, language, WORLD.project, tables)
  const judges = {
    world: engine(WORLD.tables),
    other: engine(OTHER_WORLD.tables),
    cut: engine(CUT),
    catalog: catalogOf(WORLD, shownOf),
  }
  const maker = new QueryMaker(seed)
  const tally: Tally = {
    mutants: 0,
    confined: 0,
    judged: 0,
    pipes: 0,
    run: 0,
    compared: 0,
    strict: {},
    beyond: {},
    leaks: [],
    crashes: [],
    differs: [],
    broken: [],
  }
  const at = 6
  while (tally.mutants < count) {
    const batch = Array.from({ length: Math.min(at, count - tally.mutants) }, () => maker.next())
    await Promise.all(batch.map((sql) => judge(judges, sql, tally)))
    tell(tally)
  }
  return tally
}

async function judge(judges: Judges, sql: string, tally: Tally): Promise<void> {
  const number = tally.mutants++
  const verdict = judged(judges.catalog, sql)
  if (verdict.kind === 'crashed') {
    tally.crashes.push(`${verdict.why}: ${JSON.stringify(sql)}`)
    return
  }
  if (verdict.kind !== 'confined') {
    if (number % 10 === 0) await lookAtRefusal(judges, sql, verdict, tally)
    return
  }
  tally.confined++
  const query = unseal<BigQueryQuery>(verdict.query, 'BIGQUERY')
  const { text } = query
  const note = `${JSON.stringify(sql)} printed ${JSON.stringify(text)}`
  const stray = strays(text, WORLD.project, shownOf)
  if (stray.length > 0) tally.leaks.push(`names ${stray.join(' ')}: ${note}`)
  try {
    const { reads, tables } = await judges.world.analyze(text)
    tally.judged++
    if (text.includes('|>')) tally.pipes++
    const hidden = [...tables, ...reads].filter(isHidden)
    if (hidden.length > 0) tally.leaks.push(`reads ${hidden.join(' ')}: ${note}`)
  } catch (error) {
    if (!(error instanceof ZetasqlError)) throw error
    const why = unjudged(error.message, text)
    tally.beyond[why] = (tally.beyond[why] ?? 0) + 1
    if (/^Syntax error/.test(error.message) && (await answersOf(judges.cut, sql)) !== null) tally.broken.push(note)
    return
  }
  await run(judges, sql, query, note, tally)
}

/** Says why the engine of 2023 cannot run a mutant. */
function unjudged(message: string, text: string): string {
  if (text.includes('|>')) return 'pipe syntax'
  if (/^GROUP BY ALL|^Syntax error: Unexpected keyword ALL/.test(message)) return 'GROUP BY ALL'
  return /^Syntax error/.test(message) ? 'no query' : 'a name or type that does not resolve'
}

/** The guard may refuse any text, but must not throw. */
function judged(catalog: Catalog, sql: string): Verdict | { readonly kind: 'crashed'; readonly why: string } {
  try {
    return confine({ text: sql, limit: null }, catalog, LIMITS)
  } catch (error) {
    return { kind: 'crashed', why: String(error) }
  }
}

async function run(judges: Judges, sql: string, query: BigQueryQuery, note: string, tally: Tally): Promise<void> {
  const { text, names } = query
  const answer = await answersOf(judges.world, text, names)
  if (answer === null) return
  const other = await answersOf(judges.other, text, names)
  const again = await answersOf(judges.world, text, names)
  if (answer !== again) return // The result depends on the clock or on random numbers.
  tally.run++
  if (answer !== other) tally.leaks.push(`tells what is hidden, ${answer} or ${other}: ${note}`)
  const meant = await answersOf(judges.cut, sql)
  if (meant === null) return
  tally.compared++
  if (meant !== answer) tally.differs.push(`${meant} is ${answer}: ${note}`)
}

/**
 * Returns the columns and the sorted rows as one string. Pseudo columns have the caller's names. An error at run time
 * counts as a result. Returns null if the analyzer refuses the query.
 */
async function answersOf(engine: Engine, sql: string, names?: BigQueryQuery['names']): Promise<string | null> {
  try {
    const { columns } = await engine.analyze(sql)
    const rows = await engine.evaluate(sql).then(
      (all) => all.map((row) => JSON.stringify(row)).sort(),
      (error) => [error instanceof ZetasqlError ? `failed ${error.code}` : String(error)],
    )
    const text = JSON.stringify([columns.map(({ name }) => name), rows])
    return [...(names ?? [])].reduce((all, [ours, theirs]) => all.replaceAll(ours, theirs), text)
  } catch (error) {
    if (error instanceof ZetasqlError) return null
    throw error
  }
}

async function lookAtRefusal(
  judges: Judges,
  sql: string,
  verdict: Denied | Malformed,
  tally: Tally,
): Promise<void> {
  if ((await answersOf(judges.cut, sql)) === null) return
  const why = verdict.kind === 'denied' ? `${verdict.blocked.kind} ${verdict.blocked.name}` : verdict.why
  const seen = tally.strict[why]
  tally.strict[why] = {
    count: (seen?.count ?? 0) + 1,
    shortest: seen !== undefined && seen.shortest.length <= sql.length ? seen.shortest : sql,
  }
}
