// One pipeline while it is confined: the stages printed so far, and what is known of the documents behind them.
import type { Barrier } from './barrier.ts'
import type { EarlySort } from './early-sort.ts'
import type { Bson, BsonDocument, Join } from '../query.ts'
import type { Exposed } from './exposed.ts'
import type { Extent } from './extent.ts'
import { Meter } from './meter.ts'
import { outputPath } from './names.ts'
import type { Scope } from './scope.ts'
import { Draft, type Shape } from './shape.ts'
import { refusedLimit } from './refusal.ts'
import type { Variables } from './variables.ts'
import { Work } from './work.ts'

const JOINS_MAX = 4
const STAGES_MAX = 80

/** What all pipelines of one query share. */
export class Whole {
  readonly exposed: Exposed
  readonly joins: Join[] = []
  readonly unwinds = new Map<BsonDocument, number>()
  readonly work = new Work()
  /** The body's values as the walkers see them. */
  lifted: Readonly<Record<string, Bson>> = {}
  #stages = 0

  constructor(exposed: Exposed) {
    this.exposed = exposed
  }

  join(join: Join): void {
    this.joins.push(join)
    if (this.joins.length <= JOINS_MAX) return
    throw refusedLimit(
      'joins',
      `the query joins more than ${JOINS_MAX} times`,
      'Ask in several queries, each with fewer joins.',
    )
  }

  count(stages: number): void {
    this.#stages += stages
    if (this.#stages <= STAGES_MAX) return
    throw refusedLimit('stages', `the query has ${this.#stages} stages or more in all; ${STAGES_MAX} is the most`)
  }
}

export class Flow {
  readonly whole: Whole
  /** Bound by the $lookup around this pipeline. */
  readonly variables: Variables<Extent>
  readonly inFacet: boolean
  readonly out: BsonDocument[]
  /** Of the projection in front of it. */
  readonly barrier: Barrier
  shape: Shape
  /** Top-level names in the order the query fixes. */
  columns: readonly string[]
  /** The first stage behind the projection is a sort that may be tried in front of it. */
  early: EarlySort | null = null
  #meter: Meter

  constructor(
    whole: Whole,
    variables: Variables<Extent>,
    inFacet: boolean,
    out: BsonDocument[],
    barrier: Barrier,
    shape: Shape,
    columns: readonly string[],
  ) {
    this.whole = whole
    this.variables = variables
    this.inFacet = inFacet
    this.out = out
    this.barrier = barrier
    this.shape = shape
    this.columns = columns
    this.#meter = new Meter(whole.work)
  }

  /** What is asked of the database for one document is counted anew. */
  enterStage(): void {
    this.#meter = new Meter(this.whole.work)
  }

  get scope(): Scope {
    return {
      exposed: this.whole.exposed,
      shape: this.shape,
      barrier: this.barrier,
      variables: this.variables,
      meter: this.#meter,
      redacting: false,
      iterating: false,
    }
  }

  /** The fields that a stage writes are set, in their order; their paths are checked. */
  set(of: string, fields: Iterable<readonly [path: string, shape: Shape]>): void {
    const draft = new Draft(this.shape, this.whole.work)
    const columns = new Set(this.columns)
    for (const [path, shape] of fields) {
      const components = outputPath(of, path)
      draft.set(components, shape)
      columns.add(components[0] ?? '')
    }
    this.shape = draft.finish()
    this.columns = [...columns]
  }

  /** The fields at these paths are taken away. */
  drop(of: string, paths: Iterable<string>): void {
    const draft = new Draft(this.shape, this.whole.work)
    const columns = new Set(this.columns)
    for (const path of paths) {
      const components = outputPath(of, path)
      draft.drop(components)
      if (components.length === 1) columns.delete(path)
    }
    this.shape = draft.finish()
    this.columns = [...columns]
  }
}
