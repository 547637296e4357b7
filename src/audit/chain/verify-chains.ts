// Checks the stored audit. For each chain, reports the first row that was changed, removed, inserted or moved, or a
// changed signature. Only reads the store, up to a thousand rows at a time.
import { sql, type Transaction } from 'kysely'
import type { Tables } from '../../store/tables.ts'
import { readRegistry, unchained, type KnownRegistry } from './chains.ts'
import { sameSeal, type Chain, type Gap, type Seal, type Stored } from './seal.ts'
import { bears, stepsOf, type Step } from './read-chain.ts'

/** The name that reports use for the rows that are older than the first chain. */
export const BEFORE_CHAINS = 'before the chains'

interface Finding {
  readonly kind: 'changed' | 'removed' | 'inserted'
  /** The id of the row, or of the first row of a changed pack. Null if no such row is known. */
  readonly id: string | null
  readonly what: string
}

export interface ChainReport {
  readonly chain: string
  /** The number of the chain. 0 if the report is not about one known chain. */
  readonly number: number
  readonly openedAt: string | null
  readonly rows: number
  /** How many rows were removed because they were too old, and the newest time of these rows. */
  readonly pruned: number
  readonly prunedUntil: string | null
  /** The end of the chain, to compare with a copy that is stored elsewhere. Null if unknown. */
  readonly head: { readonly seq: number; readonly link: string } | null
  readonly finding: Finding | null
}

/** The transaction must read one snapshot. `seen` is called with the number of rows and packs of each batch. */
export async function* verifyAudit(
  tx: Transaction<Tables>,
  seal: Seal,
  seen: (rows: number) => void,
): AsyncIterable<ChainReport> {
  const registry = await readRegistry({ tx, locked: (query) => query }, seal)
  const chains = await tx.selectFrom('audit_chains').selectAll().orderBy('number').execute()
  const known = new Set(chains.map((chain) => chain.number))
  const broken = registryFinding(chains, registry)
  if (broken !== null) yield reportOf({ finding: broken })
  if (registry === null && (await isEmptied(tx))) {
    const what = 'every row and the list of chains were removed, but teams exist'
    yield reportOf({ finding: { kind: 'removed', id: null, what } })
  }
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
  return { kind: 'inserted', id: null, what: `chain ${outside.chain} was never started by this service` }
}

/** Creating a team writes an audit row. If there are teams but no rows, somebody has deleted the rows. */
async function isEmptied(tx: Transaction<Tables>): Promise<boolean> {
  for (const table of ['audit', 'audit_packs'] as const) {
    if ((await tx.selectFrom(table).select('team_id').limit(1).executeTakeFirst()) !== undefined) return false
  }
  return (await tx.selectFrom('teams').select('id').limit(1).executeTakeFirst()) !== undefined
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
    const what = `the gap that replaces rows ${forged.first_seq} to ${forged.last_seq} was changed`
    return report({ kind: 'changed', id: null, what })
  }
  const holds = sameSeal(seal.chain(chain), chain.signature)
  for await (const steps of stepsOf(tx, chain.chain)) {
    const finding = walk.take(steps, holds ? chain.head_seq : Infinity)
    seen(steps.length)
    if (finding !== null) return report(finding)
  }
  if (!holds) return report({ kind: 'changed', id: null, what: 'the signed end of the chain was changed' })
  return report(walk.end(chain))
}

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

  take(steps: readonly Step[], headSeq: number): Finding | null {
    for (const [index, step] of steps.entries()) {
      const finding =
        step.kind === 'pack'
          ? packFinding(step)
          : (this.#place(step.row, headSeq) ?? this.#hold(step, steps[index + 1]))
      if (finding !== null) return finding
      if (step.kind === 'row') this.rows++
    }
    return null
  }

  end(chain: Chain): Finding | null {
    this.#skip()
    if (this.#next <= chain.head_seq) {
      return { kind: 'removed', id: null, what: `${rowsNamed(this.#next, chain.head_seq)} ${removed(this.#at, null)}` }
    }
    if (this.#link === chain.head_link) return null
    return { kind: 'changed', id: null, what: 'the last row is not the one that the signature of the chain names' }
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
    if (seq > headSeq) return inserted(row, `comes after the end of its chain, which has ${headSeq} rows`)
    if (seq < this.#next) return inserted(row, 'is in the place of another row, or of a row removed by retention')
    if (seq === this.#next) return null
    return { kind: 'removed', id: null, what: `${rowsNamed(this.#next, seq - 1)} ${removed(this.#at, row)}` }
  }

  #hold(step: Step & { kind: 'row' }, following: Step | undefined): Finding | null {
    const { row, seq, text } = step
    const link = this.#seal.link(this.#link, this.#chain, seq, text)
    if (bears(step, link)) {
      this.#next = seq + 1
      this.#link = link
      this.#at = row.at
      return null
    }
    const what = `row ${row.id} (number ${seq}, of ${row.at}, ${row.action}) was changed`
    return {
      kind: 'changed',
      id: row.id,
      what: this.#isOnlyChanged(step, following) ? what : `${what} or replaced`,
    }
  }

  /** Returns true if the next row fits the stored link of this row. Then only this row was changed. */
  #isOnlyChanged({ row, seq, isMarked }: Step & { kind: 'row' }, following: Step | undefined): boolean {
    if (isMarked || following?.kind !== 'row' || following.seq !== seq + 1) return false
    return bears(following, this.#seal.link(row.link ?? '', this.#chain, following.seq, following.text))
  }
}

function packFinding({ pack, holds }: Step & { kind: 'pack' }): Finding | null {
  if (holds) return null
  const what = `the pack of ${rowsNamed(pack.first_seq, pack.last_seq)} (from ${pack.first_at} on) was changed`
  return { kind: 'changed', id: pack.first_id, what }
}

type Named = { readonly id: string; readonly at: string; readonly action: string }

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

function inserted(row: Named, why: string): Finding {
  return { kind: 'inserted', id: row.id, what: `row ${row.id} (of ${row.at}, ${row.action}) ${why}` }
}

async function* strayRows(tx: Transaction<Tables>, chains: readonly Chain[]): AsyncIterable<ChainReport> {
  const known = new Set(chains.map((chain) => chain.chain))
  for (const nextOf of [nextRow, nextPack]) {
    for (let last: string | null = null; ;) {
      const row: Awaited<ReturnType<typeof nextOf>> = await nextOf(tx, last)
      if (row === undefined || row.chain === null) break
      last = row.chain
      if (!known.has(last))
        yield reportOf({ chain: last, finding: inserted(row, 'belongs to a chain that does not exist') })
    }
  }
}

async function nextRow(tx: Transaction<Tables>, last: string | null) {
  const rows = tx.selectFrom('audit').selectAll().where('seq', 'is not', null)
  return await (last === null ? rows.where('chain', 'is not', null) : rows.where('chain', '>', last))
    .orderBy('chain')
    .orderBy('seq')
    .limit(1)
    .executeTakeFirst()
}

async function nextPack(tx: Transaction<Tables>, last: string | null) {
  const packs = tx
    .selectFrom('audit_packs')
    .select(['chain', 'first_id as id', 'first_at as at', sql.lit('in a pack').as('action')])
  return await (last === null ? packs : packs.where('chain', '>', last))
    .orderBy('chain')
    .orderBy('first_seq')
    .limit(1)
    .executeTakeFirst()
}

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
    foreign === undefined
      ? null
      : inserted(foreign, 'waits for its link and was not written by this service, or was changed')
  yield reportOf({ chain: 'not linked yet', rows: rows.length, finding })
}

function tooMany(rows: number, before: number): Finding | null {
  if (rows <= before) return null
  const what = `rows without a chain were inserted: there are ${rows}, and there were ${before} before the first chain`
  return { kind: 'inserted', id: null, what }
}

/** Rows older than the first chain cannot be checked. A newer row without a chain was inserted by hand. */
async function* rowsBeforeChains(
  tx: Transaction<Tables>,
  registry: KnownRegistry,
  seen: (rows: number) => void,
): AsyncIterable<ChainReport> {
  const rows = await unchained(tx)
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
  const finding =
    young === undefined
      ? tooMany(rows, registry?.before ?? rows)
      : inserted(young, 'has no chain, but is younger than the first chain')
  yield reportOf({ chain: BEFORE_CHAINS, rows, finding })
}
