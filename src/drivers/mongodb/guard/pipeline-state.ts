// One pipeline while it is confined: the stages printed so far, and what is known of the documents behind them.
import type { Barrier } from './barrier.ts'
import type { EarlySort } from './early-sort.ts'
import type { BsonDocument, Join } from '../query.ts'
import type { Exposed, ExposedCollection } from './exposed.ts'
import type { Extent } from './value-size.ts'
import { cancelPoints, readCheck, lengthCheck, QUICK_STEPS, type Gathered } from './runtime-checks.ts'
import { Meter, STEPS_MAX, type Load } from './step-meter.ts'
import { outputPath } from './field-names.ts'
import type { Scope } from './scope.ts'
import { Draft, type Shape } from './document-shape.ts'
import { refusedGrowth, refusedLimit } from './refusal.ts'
import type { Variables } from './variables.ts'
import { atLeast } from './minimum-versions.ts'
import type { Work } from './work-budget.ts'

const JOINS_MAX = 4
const STAGES_MAX = 80

/** What all pipelines of one query share. */
export class Whole {
  readonly exposed: Exposed
  readonly joins: Join[] = []
  readonly unwinds = new Map<BsonDocument, number>()
  readonly load: Load
  /** Where documents of a collection come in: its label, and what stands in front of them. */
  readonly #sources: (readonly [label: string, barrier: Barrier])[] = []
  #stages = 0

  constructor(exposed: Exposed, load: Load) {
    this.exposed = exposed
    this.load = load
  }

  get work(): Work {
    return this.load.work
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

  source({ label }: ExposedCollection, barrier: Barrier): void {
    this.#sources.push([label, barrier])
  }

  /** The database fails a document that is too large for what the query does with it. To be called at the end. */
  holdSizes(): void {
    if (!atLeast(this.exposed.server, [4, 4])) return
    for (const [label, barrier] of this.#sources) {
      const check = readCheck(this.load.reads, `${label}.`)
      if (check !== null) barrier.check(check)
    }
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
    this.#meter = new Meter(whole.load)
  }

  /** Prints one stage. Where it takes long for one document, the database looks for a cancel before each few of them. */
  stage(print: () => void): void {
    const looks = this.#looks()
    const before = this.out.at(-1)
    this.#meter = new Meter(this.whole.load)
    print()
    // By what stands there: the stage may have put a wall further up.
    const at = before === undefined ? 0 : this.out.lastIndexOf(before) + 1
    this.out.splice(at, 0, ...looks(this.#meter.worst))
  }

  /** Behind a stage that makes an array of many documents for each of them. */
  lookAgain(): void {
    this.out.push(...this.#looks()(STEPS_MAX))
  }

  /** Stages that look for a cancel before the next one, by the steps that it takes. */
  #looks(): (steps: number) => readonly BsonDocument[] {
    const { kids, open } = this.shape
    if (kids === null || open) return (steps) => cancelPoints(steps, null)
    let name = 'vt_look'
    while (kids.has(name)) name += '_'
    return (steps) => cancelPoints(steps, name)
  }

  /** The database fails arrays that are longer than were reckoned with, or than `most`. */
  hold(gathered: readonly Gathered[], most = Infinity): void {
    const length = Math.min(this.whole.load.held ?? Infinity, most)
    if (length === Infinity || gathered.length === 0) return
    this.out.push(lengthCheck(gathered, length))
  }

  /** Of a stage that sorts its documents before it computes anything for them: nothing in front of it helps. */
  checkSorted(name: string): void {
    const { worst: steps } = this.#meter
    if (steps <= QUICK_STEPS) return
    throw refusedGrowth(
      'steps',
      `${name} takes about ${Math.round(steps)} steps for one document; ${QUICK_STEPS} is the most in this stage`,
      `Compute the values in a $set before ${name}, and name their fields in it.`,
    )
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
