// The state of a pipeline while the guard confines it: the printed stages, and the known fields of the documents after
// them.
import type { Barrier } from '../documents/barrier.ts'
import type { EarlySort } from './early-sort.ts'
import type { BsonDocument, Join } from '../../confined-query.ts'
import { countGaps } from '../documents/close-gaps.ts'
import type { Exposed } from '../documents/exposed.ts'
import type { Tree } from '../documents/exposed-tree.ts'
import { Held } from '../bounds/held-memory.ts'
import { OBJECT_BYTES, STORED, type Extent } from '../bounds/value-size.ts'
import { DOCUMENT_MAX, NOTHING, Spare, worstOf, type Measured } from '../bounds/measured-work.ts'
import { cancelPoints, lengthCheck, QUICK_STEPS, type Gathered, type Limit } from '../bounds/runtime-checks.ts'
import { Meter, STEPS_MAX, type Load } from '../bounds/step-meter.ts'
import { outputPath } from '../body/field-names.ts'
import type { Scope } from '../documents/scope.ts'
import { Draft, objectsAt, valueAt, type Shape } from '../documents/document-shape.ts'
import { isConstant, scaled } from '../bounds/amount.ts'
import { refusedLimit } from '../refusals/refusal.ts'
import type { Variables } from '../documents/variables.ts'
import type { Work } from '../bounds/work-budget.ts'

const JOINS_MAX = 4
const STAGES_MAX = 80

/** The state that all pipelines of one query share. */
export class Whole {
  readonly exposed: Exposed
  readonly joins: Join[] = []
  readonly unwinds = new Map<BsonDocument, number>()
  readonly load: Load
  /** The work that the stages may still do without a measurement. */
  readonly spare = new Spare()
  /** See shareLimits(). */
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

/** The bytes that a stage that gathers documents may take in mongod. */
const GATHERED_MAX = 100 * 1024 * 1024
/** The steps to write, keep or remove a field in one object. */
const OBJECT_STEPS = 4

export class Flow {
  readonly whole: Whole
  /** The variables of the $lookup that contains this pipeline. */
  readonly variables: Variables<Extent>
  readonly inFacet: boolean
  readonly out: BsonDocument[]
  /** The memory that stages of this pipeline hold at the same time. */
  readonly held = new Held()
  /** The barrier of the projection before this pipeline (barrier.ts). */
  readonly barrier: Barrier
  shape: Shape
  /** The top-level names whose order the query decides. */
  columns: readonly string[]
  /** Set if the first stage after the projection is a sort that may be tried before it. */
  early: EarlySort | null = null
  /**
   * True if mongod has just read the documents from the collection: no stage has multiplied or gathered documents so
   * far.
   */
  isRead: boolean
  /** The maximum number of bytes of a document. */
  size: number
  #meter: Meter
  /** If the stage sorts before it computes, the steps that it may take for one document. */
  #most: number | undefined
  #next: (() => void) | null = null

  constructor(
    whole: Whole,
    variables: Variables<Extent>,
    inFacet: boolean,
    out: BsonDocument[],
    barrier: Barrier,
    shape: Shape,
    columns: readonly string[],
    { isRead, size = DOCUMENT_MAX }: { readonly isRead: boolean; readonly size?: number },
  ) {
    this.isRead = isRead
    this.size = size
    this.whole = whole
    this.variables = variables
    this.inFacet = inFacet
    this.out = out
    this.barrier = barrier
    this.shape = shape
    this.columns = columns
    this.#meter = new Meter(whole.load, isRead)
  }

  /**
   * Prints one stage. If it may take long for one document, adds stages before it that let mongod check for a cancel,
   * and that fail for a document that takes too long.
   */
  stage(print: () => void): void {
    const looks = this.#looks()
    const before = this.out.at(-1)
    this.#meter = new Meter(this.whole.load, this.isRead)
    this.#most = undefined
    const isRead = this.isRead
    print()
    // Printing the stage may have inserted a barrier before it, so find the place again.
    const at = before === undefined ? 0 : this.out.lastIndexOf(before) + 1
    const { steps } = this.#meter.stage
    this.whole.load.settle(this.#meter.stage)
    const added = looks(steps.constant, this.#measured(isRead))
    // mongod moves a $match that reads other fields before these stages, but never before a $limit.
    const isMatch = added.length > 0 && Object.hasOwn(this.out[at] ?? {}, '$match')
    this.out.splice(at, 0, ...added, ...(isMatch ? [{ $limit: Number.MAX_SAFE_INTEGER }] : []))
    const next = this.#next
    this.#next = null
    if (next !== null) this.stage(next)
  }

  /** Prints another stage after the one that is being printed. The other stage is counted separately. */
  andThen(print: () => void): void {
    this.#next = print
  }

  /** Prints the stage that closes gaps in partly exposed fields. Adds cancel points before it. */
  closeGaps(tree: Tree, print: () => void): void {
    this.stage(() => {
      for (const [name, below] of tree) if (below !== null) countGaps(valueAt(this.shape, [name]), below, this.#meter)
      print()
    })
  }

  /** Adds cancel points (runtime-checks.ts) after a stage that has made an array of many documents in each document. */
  lookAgain(): void {
    this.out.push(...this.#looks()(STEPS_MAX, NOTHING))
  }

  #measured(isRead: boolean): Measured {
    const [{ stage }, size] = [this.#meter, this.size]
    this.size += worstOf(stage.bytes, size) + stage.bytes.constant
    return this.whole.spare.measured(stage, { size, isRead, ...(this.#most !== undefined && { most: this.#most }) })
  }

  /** Notes that the stage has put other documents into each document. */
  gatherInto(): void {
    this.size += GATHERED_MAX
  }

  /** Notes that the stage has made new documents, or several documents from each document. */
  gather(): void {
    this.isRead = false
    this.gatherInto()
  }

  /** Returns a function that gets the steps of a stage, and returns the cancel points before it. */
  #looks(): (steps: number, work: Measured) => readonly BsonDocument[] {
    const { kids, open } = this.shape
    const { limits } = this.whole
    if (kids === null || open) return (steps, work) => cancelPoints(steps, null, work, limits)
    let name = 'vt_look'
    while (kids.has(name)) name += '_'
    return (steps, work) => cancelPoints(steps, name, work, limits)
  }

  /** Adds a check that fails the query if a gathered array has more than `most` elements. */
  hold(gathered: readonly Gathered[], most: number): void {
    if (gathered.length > 0) this.out.push(lengthCheck(gathered, most))
  }

  /** Checks a stage that sorts before it computes. Cancel points before it do not help. */
  checkSorted(name: string): void {
    this.#most = QUICK_STEPS
    const steps = this.#meter.stage.steps.constant
    if (steps <= QUICK_STEPS) return
    throw refusedLimit(
      'steps',
      `${name} takes about ${Math.round(steps)} steps for one document; the limit for this stage is ${QUICK_STEPS}`,
      `Compute the values in a $set before ${name}, and use the new fields in ${name}.`,
    )
  }

  get scope(): Scope {
    return {
      exposed: this.whole.exposed,
      shape: this.shape,
      part: null,
      barrier: this.barrier,
      variables: this.variables,
      meter: this.#meter,
      redacting: false,
      iterating: false,
    }
  }

  /** Counts the objects in which a stage writes, keeps or removes the field. */
  countObjects(path: readonly string[]): void {
    if (path.length < 2) return
    const objects = objectsAt(this.shape, path)
    this.#meter.step(scaled(objects, OBJECT_STEPS))
    this.#meter.parse(valueAt(this.shape, path.slice(0, 1)))
    if (!isConstant(objects)) this.#meter.made({ ...STORED, kept: scaled(objects, OBJECT_BYTES) })
  }

  /** Sets the fields that a stage writes, in this order. Checks their paths. */
  set(of: string, fields: Iterable<readonly [path: string, shape: Shape]>): void {
    const draft = new Draft(this.shape, this.whole.work)
    const columns = new Set(this.columns)
    for (const [path, shape] of fields) {
      const components = outputPath(of, path)
      this.countObjects(components)
      draft.set(components, shape)
      columns.add(components[0] ?? '')
    }
    this.shape = draft.finish()
    this.columns = [...columns]
  }

  drop(of: string, paths: Iterable<string>): void {
    const draft = new Draft(this.shape, this.whole.work)
    const columns = new Set(this.columns)
    for (const path of paths) {
      const components = outputPath(of, path)
      this.countObjects(components)
      draft.drop(components)
      if (components.length === 1) columns.delete(path)
    }
    this.shape = draft.finish()
    this.columns = [...columns]
  }
}
