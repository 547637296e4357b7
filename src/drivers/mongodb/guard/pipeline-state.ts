// The state of a pipeline while the guard confines it: the printed stages, and the known fields of the documents after them.
import type { Barrier } from './barrier.ts'
import type { EarlySort } from './early-sort.ts'
import type { BsonDocument, Join } from '../query.ts'
import type { Exposed } from './exposed.ts'
import { CONSTANT, countsOf, DOCUMENT, type Extent } from './value-size.ts'
import { Spare, type Measured } from './measured-work.ts'
import { cancelPoints, lengthCheck, QUICK_STEPS, type Gathered, type Limit } from './runtime-checks.ts'
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

/** State that all pipelines of one query share. */
export class Whole {
  readonly exposed: Exposed
  readonly joins: Join[] = []
  readonly unwinds = new Map<BsonDocument, number>()
  readonly load: Load
  /** What the stages may still take without being measured. */
  readonly spare = new Spare()
  /** The limits of what is measured; see shareLimits(). */
  readonly limits: Limit[] = []
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
      'Split the query into several queries with fewer joins each.',
    )
  }

  count(stages: number): void {
    this.#stages += stages
    if (this.#stages <= STAGES_MAX) return
    throw refusedLimit('stages', `the query has ${this.#stages} or more stages in all; the limit is ${STAGES_MAX}`)
  }
}

/** How many times longer than a stored array the value may be. */
function copiesIn(extent: Extent): number {
  if ((extent.degree ?? 1) > 1) return Infinity
  return [...countsOf(extent)].reduce((all, [part, times]) => (part === CONSTANT ? all : all + times), 0)
}

const NOTHING: Measured = { steps: null, bytes: null, vars: [] }

export class Flow {
  readonly whole: Whole
  /** The variables of the $lookup around this pipeline. */
  readonly variables: Variables<Extent>
  readonly inFacet: boolean
  readonly out: BsonDocument[]
  /** The barrier of the projection before this pipeline. */
  readonly barrier: Barrier
  shape: Shape
  /** The top-level names whose order the query fixes. */
  columns: readonly string[]
  /** Set if the first stage after the projection is a sort that may be tried before the projection. */
  early: EarlySort | null = null
  /** How often the stages so far may have copied a part of the document into itself. */
  grown = 1
  #meter: Meter
  /** The steps that the stage may take for one document, if it sorts before it computes. */
  #most: number | undefined

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

  /**
   * Prints one stage. If the stage may take long for one document, stages are added before it that fail a document for which
   * it takes too long, and that let mongod check for a cancel.
   */
  stage(print: () => void): void {
    const looks = this.#looks()
    const before = this.out.at(-1)
    this.#meter = new Meter(this.whole.load)
    this.#most = undefined
    const size = this.#size()
    print()
    // Find the place again: printing the stage may have inserted a barrier further up.
    const at = before === undefined ? 0 : this.out.lastIndexOf(before) + 1
    const added = looks(this.#meter.worst, this.#measured(size))
    // mongod moves a $match that reads other fields before these stages, but never before a $limit.
    const isMatch = added.length > 0 && Object.hasOwn(this.out[at] ?? {}, '$match')
    this.out.splice(at, 0, ...added, ...(isMatch ? [{ $limit: Number.MAX_SAFE_INTEGER }] : []))
  }

  /** Adds cancel points after a stage that makes an array of many documents for each document. */
  lookAgain(): void {
    this.out.push(...this.#looks()(STEPS_MAX, NOTHING))
  }

  /** How much larger than a stored document this one may be: mongod gathers up to 100 MB. */
  #size(): number {
    return this.grown * (this.whole.load.gathers ? 6 : 1)
  }

  /** $bsonSize needs MongoDB 4.4. */
  #measured(size: number): Measured {
    const { turned, reads } = this.#meter
    return atLeast(this.whole.exposed.server, [4, 4])
      ? this.whole.spare.measured(turned, reads, size, this.#most)
      : NOTHING
  }

  /** Returns a function from a stage's number of steps to the cancel points before it. */
  #looks(): (steps: number, work: Measured) => readonly BsonDocument[] {
    const { kids, open } = this.shape
    const { limits } = this.whole
    if (kids === null || open) return (steps, work) => cancelPoints(steps, null, work, limits)
    let name = 'vt_look'
    while (kids.has(name)) name += '_'
    return (steps, work) => cancelPoints(steps, name, work, limits)
  }

  /** Adds a check that fails gathered arrays longer than the assumed length or `most`. */
  hold(gathered: readonly Gathered[], most = Infinity): void {
    const length = Math.min(this.whole.load.held ?? Infinity, most)
    if (length === Infinity || gathered.length === 0) return
    this.out.push(lengthCheck(gathered, length))
  }

  /** For a stage that sorts before it computes: cancel points before it do not help. */
  checkSorted(name: string): void {
    this.#most = QUICK_STEPS
    const { worst: steps } = this.#meter
    if (steps <= QUICK_STEPS) return
    throw refusedGrowth(
      'steps',
      `${name} takes about ${Math.round(steps)} steps for one document; the limit for this stage is ${QUICK_STEPS}`,
      `Compute the values in a $set before ${name}, and use the new fields in ${name}.`,
    )
  }

  get scope(): Scope {
    return {
      exposed: this.whole.exposed,
      shape: this.shape,
      part: DOCUMENT,
      barrier: this.barrier,
      variables: this.variables,
      meter: this.#meter,
      redacting: false,
      iterating: false,
    }
  }

  /** Sets the fields that a stage writes, in order, and checks their paths. */
  set(of: string, fields: Iterable<readonly [path: string, shape: Shape]>): void {
    this.#grow([...fields].map(([, shape]) => shape))
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

  #grow(shapes: readonly Shape[]): void {
    const copies = shapes.map(({ extent }) => (extent === undefined ? 1 : copiesIn(extent)))
    this.grown *= Math.max(1, ...copies)
  }

  /** Removes the fields at these paths. */
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
