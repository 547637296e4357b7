// Holds what the store has of the audit against its chains: every row at its place, unchanged, none missing, none put in
// between, up to each chain's signed end. It only reads, a thousand rows at a time, and answers chain by chain.
import type { Transaction } from 'kysely'
import type { Tables } from '../store/tables.ts'
import { FIRST_PORTION, nextPortion } from './portion.ts'
import { readRegistry, type KnownRegistry } from './chains.ts'
import { sameSeal, type Chain, type Gap, type Seal, type Stored } from './seal.ts'

/** What is wrong first: with which row of which time, in words. */
export interface Finding {
  readonly kind: 'changed' | 'removed' | 'inserted'
  /** Null where a row is gone. */
  readonly id: string | null
  readonly what: string
}

/** One chain; `finding` is null where it holds. */
export interface ChainReport {
  readonly chain: string
  /** 0: rows of no chain. */
  readonly number: number
  readonly openedAt: string | null
  /** Rows that were looked at. */
  readonly rows: number
  /** Rows that were removed for their age, up to this time. */
  readonly pruned: number
  readonly prunedUntil: string | null
  /** To be compared with what was noted elsewhere; null where it is not known. */
  readonly head: { readonly seq: number; readonly link: string } | null
  readonly finding: Finding | null
}

/** Looks at everything, chain after chain, within one transaction that sees one state. `seen` is told each row count. */
export async function* verifyAudit(
  tx: Transaction<Tables>,
  seal: Seal,
  seen: (rows: number) => void,
): AsyncIterable<ChainReport> {
  const registry = await readRegistry(tx, seal)
  const chains = await tx.selectFrom('audit_chains').selectAll().orderBy('number').execute()
  const known = new Set(chains.map((chain) => chain.number))
  const broken = registryFinding(chains, registry)
  if (broken !== null) yield reportOf({ finding: broken })
  for (const number of missing(known, registry)) {
    const what = `chain number ${number} was removed, with all of its rows`
    yield reportOf({ number, finding: { kind: 'removed', id: null, what } })
  }
  for (const chain of chains) yield await verifyChain(tx, seal, chain, seen)
  yield* strayRows(tx, chains)
  yield* unlinkedRows(tx, seal, seen)
  yield* rowsBeforeChains(tx, registry, seen)
}

function registryFinding(chains: readonly Chain[], registry: KnownRegistry): Finding | null {
  const changed = (what: string): Finding => ({ kind: 'changed', id: null, what })
  if (registry === null) return chains.length === 0 ? null : changed('the list of chains was removed')
  if (!registry.holds) return changed('the list of chains was changed')
  const outside = chains.find((chain) => chain.number < registry.first || chain.number > registry.last)
  if (outside === undefined) return null
  return { kind: 'inserted', id: null, what: `chain ${outside.chain} is none of those that were begun` }
}

function missing(known: ReadonlySet<number>, registry: KnownRegistry): readonly number[] {
  if (registry?.holds !== true) return []
  const { first, last } = registry
  return Array.from({ length: last - first + 1 }, (_, index) => first + index).filter((number) => !known.has(number))
}

function reportOf(report: Partial<ChainReport>): ChainReport {
  const nothing = {
    chain: '',
    number: 0,
    openedAt: null,
    rows: 0,
    pruned: 0,
    prunedUntil: null,
    head: null,
    finding: null,
  }
  return { ...nothing, ...report }
}

async function verifyChain(
  tx: Transaction<Tables>,
  seal: Seal,
  chain: Chain,
  seen: (rows: number) => void,
): Promise<ChainReport> {
  const gaps = await tx.selectFrom('audit_gaps').selectAll().where('chain', '=', chain.chain).execute()
  const pruned = gaps.reduce((sum, gap) => sum + gap.last_seq - gap.first_seq + 1, 0)
  const prunedUntil =
    gaps
      .map((gap) => gap.until)
      .sort()
      .at(-1) ?? null
  const walk = new Walk(seal, chain.chain, gaps)
  const about = { chain: chain.chain, number: chain.number, openedAt: chain.opened_at, pruned, prunedUntil }
  const report = (finding: Finding | null) =>
    reportOf({ ...about, rows: walk.rows, head: { seq: chain.head_seq, link: chain.head_link }, finding })
  const [forged] = gaps.filter((gap) => !sameSeal(seal.gap(gap), gap.signature))
  if (forged !== undefined) {
    const what = `what stands in place of rows ${forged.first_seq} to ${forged.last_seq} was changed`
    return report({ kind: 'changed', id: null, what })
  }
  const holds = sameSeal(seal.chain(chain), chain.signature)
  let after: Stored | null = null
  let count = FIRST_PORTION
  for (;;) {
    const rows: readonly Stored[] = await rowsBehind(tx, chain.chain, after, count)
    const finding = walk.take(rows, holds ? chain.head_seq : Infinity)
    seen(rows.length)
    if (finding !== null) return report(finding)
    after = rows.at(-1) ?? null
    if (rows.length < count) break
    count = nextPortion(rows)
  }
  if (!holds) return report({ kind: 'changed', id: null, what: 'the signed end of the chain was changed' })
  return report(walk.end(chain))
}

/** By id too: without its index the store would take two rows at one place. */
async function rowsBehind(
  tx: Transaction<Tables>,
  chain: string,
  after: Pick<Stored, 'seq' | 'id'> | null,
  count: number,
): Promise<readonly Stored[]> {
  let rows = tx.selectFrom('audit').selectAll().where('chain', '=', chain).where('seq', 'is not', null)
  if (after !== null) {
    const { seq, id } = after
    rows = rows.where('seq', '>=', seq).where((eb) => eb.or([eb('seq', '>', seq), eb('id', '>', id)]))
  }
  return await rows.orderBy('seq').orderBy('id').limit(count).execute()
}

/** Goes along one chain and says what is wrong first. */
class Walk {
  readonly #seal: Seal
  readonly #chain: string
  readonly #gaps: ReadonlyMap<number, Gap>
  #next = 1
  #link = ''
  #at: string | null = null
  rows = 0

  constructor(seal: Seal, chain: string, gaps: readonly Gap[]) {
    this.#seal = seal
    this.#chain = chain
    this.#gaps = new Map(gaps.map((gap) => [gap.first_seq, gap]))
  }

  take(rows: readonly Stored[], headSeq: number): Finding | null {
    for (const [index, row] of rows.entries()) {
      const finding = this.#place(row, headSeq) ?? this.#hold(row, rows[index + 1])
      if (finding !== null) return finding
      this.rows++
    }
    return null
  }

  /** The chain must end where its signature says. */
  end(chain: Chain): Finding | null {
    this.#skip()
    if (this.#next <= chain.head_seq) {
      return { kind: 'removed', id: null, what: `${rowsNamed(this.#next, chain.head_seq)} ${removed(this.#at, null)}` }
    }
    if (this.#link === chain.head_link) return null
    return { kind: 'changed', id: null, what: 'the last row is not the one the chain was signed with' }
  }

  #skip(): void {
    for (let gap = this.#gaps.get(this.#next); gap !== undefined; gap = this.#gaps.get(this.#next)) {
      this.#next = gap.last_seq + 1
      this.#link = gap.last_link
      this.#at = gap.until
    }
  }

  #place(row: Stored, headSeq: number): Finding | null {
    this.#skip()
    const seq = row.seq ?? 0
    if (seq > headSeq) return inserted(row, `stands behind the end of its chain, which has ${headSeq} rows`)
    if (seq < this.#next) return inserted(row, 'stands where another row is, or was removed for its age')
    if (seq === this.#next) return null
    return { kind: 'removed', id: null, what: `${rowsNamed(this.#next, seq - 1)} ${removed(this.#at, row)}` }
  }

  #hold(row: Stored, following: Stored | undefined): Finding | null {
    const seq = row.seq ?? 0
    const link = this.#seal.link(this.#link, this.#chain, seq, row)
    if (sameSeal(link, row.link)) {
      this.#next = seq + 1
      this.#link = link
      this.#at = row.at
      return null
    }
    const what = `row ${row.id} (number ${seq}, of ${row.at}, ${row.action})`
    // Where the row behind still fits the link that stands here, only what the row says was changed.
    const fits =
      following?.seq === seq + 1 &&
      sameSeal(this.#seal.link(row.link ?? '', this.#chain, seq + 1, following), following.link)
    return {
      kind: 'changed',
      id: row.id,
      what: fits ? `${what} was changed` : `${what} was changed, or put in its place`,
    }
  }
}

function rowsNamed(first: number, last: number): string {
  return first === last ? `row number ${first}` : `rows number ${first} to ${last}`
}

function removed(after: string | null, before: Stored | null): string {
  const where = [
    ...(after === null ? [] : [`after ${after}`]),
    ...(before === null ? ['at the end'] : [`before row ${before.id} of ${before.at}`]),
  ]
  return `removed, ${where.join(', ')}`
}

function inserted(row: Stored, why: string): Finding {
  return { kind: 'inserted', id: row.id, what: `row ${row.id} (of ${row.at}, ${row.action}) ${why}` }
}

/** Rows of chains that never were, or are gone. */
async function* strayRows(tx: Transaction<Tables>, chains: readonly Chain[]): AsyncIterable<ChainReport> {
  const known = new Set(chains.map((chain) => chain.chain))
  for (let last = ''; ;) {
    const row = await tx
      .selectFrom('audit')
      .selectAll()
      .where('seq', 'is not', null)
      .where('chain', '>', last)
      .orderBy('chain')
      .orderBy('seq')
      .limit(1)
      .executeTakeFirst()
    if (row === undefined || row.chain === null) return
    last = row.chain
    if (!known.has(last)) yield reportOf({ chain: last, finding: inserted(row, 'is of a chain that there is not') })
  }
}

/** Rows that wait for their link: they must be of our making. */
async function* unlinkedRows(
  tx: Transaction<Tables>,
  seal: Seal,
  seen: (rows: number) => void,
): AsyncIterable<ChainReport> {
  const rows = await tx
    .selectFrom('audit')
    .selectAll()
    .where('seq', 'is', null)
    .where('chain', 'is not', null)
    .orderBy('id')
    .execute()
  if (rows.length === 0) return
  seen(rows.length)
  const foreign = rows.find((row) => !sameSeal(seal.alone(row), row.link))
  const finding =
    foreign === undefined ? null : inserted(foreign, 'waits for its link and is not of our making, or was changed')
  yield reportOf({ chain: 'not linked yet', rows: rows.length, finding })
}

/** Rows from before there were chains are not covered; one that claims to be, and is younger, was put there. */
async function* rowsBeforeChains(
  tx: Transaction<Tables>,
  registry: KnownRegistry,
  seen: (rows: number) => void,
): AsyncIterable<ChainReport> {
  const { rows } = await tx
    .selectFrom('audit')
    .select(({ fn }) => fn.countAll<number>().as('rows'))
    .where('chain', 'is', null)
    .executeTakeFirstOrThrow()
  if (rows === 0) return
  seen(rows)
  const begun = registry?.since ?? '9999'
  const young = await tx
    .selectFrom('audit')
    .selectAll()
    .where('chain', 'is', null)
    .where('at', '>=', begun)
    .orderBy('at')
    .limit(1)
    .executeTakeFirst()
  const finding = young === undefined ? null : inserted(young, 'is of no chain, though younger than the first')
  yield reportOf({ chain: 'before the chains', rows, finding })
}
