// One pipeline while it is confined: the stages printed so far, and what is known of the documents behind them.
import type { Barrier } from './barrier.ts'
import type { EarlySort } from './early-sort.ts'
import type { BsonDocument, Join } from '../query.ts'
import type { Exposed } from './exposed.ts'
import type { Scope } from './scope.ts'
import { withField, type Shape } from './shape.ts'
import { Broken, refusedLimit, shown } from './refusal.ts'

const JOINS_MAX = 4
const STAGES_MAX = 80

/** What all pipelines of one query share. */
export class Whole {
  readonly exposed: Exposed
  readonly joins: Join[] = []
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
    if (this.#stages > STAGES_MAX) throw refusedLimit('stages', `the query has more than ${STAGES_MAX} stages in all`)
  }
}

export class Flow {
  readonly whole: Whole
  /** Bound by the $lookup around this pipeline. */
  readonly variables: ReadonlySet<string>
  readonly inFacet: boolean
  readonly out: BsonDocument[]
  /** Of the projection in front of it. */
  readonly barrier: Barrier
  shape: Shape
  /** Top-level names in the order the query fixes. */
  columns: readonly string[]
  /** The first stage behind the projection is a sort that may be tried in front of it. */
  early: EarlySort | null = null

  constructor(
    whole: Whole,
    variables: ReadonlySet<string>,
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
  }

  get scope(): Scope {
    return {
      exposed: this.whole.exposed,
      shape: this.shape,
      barrier: this.barrier,
      variables: this.variables,
      redacting: false,
      iterating: false,
    }
  }

  /** A field is set; the path is checked. */
  set(of: string, path: string, shape: Shape): void {
    const components = outputPath(of, path)
    this.shape = withField(this.shape, components, shape)
    const [top = ''] = components
    if (!this.columns.includes(top)) this.columns = [...this.columns, top]
  }
}

/** The components of a path that a stage writes. */
export function outputPath(of: string, path: string): readonly string[] {
  const components = path.split('.')
  if (components.some((component) => component === '' || component.startsWith('$'))) {
    throw new Broken(`${of}: ${shown(path) || 'an empty text'} cannot be the name of a field`)
  }
  return components
}
