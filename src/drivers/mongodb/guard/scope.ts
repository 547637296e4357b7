// Where a filter or an expression stands: what fields and variables there are, and which server will read it.
import { didYouMean, nearest } from '../../nearest.ts'
import type { Barrier } from './barrier.ts'
import type { Exposed } from './exposed.ts'
import { STORED, type Extent } from './value-size.ts'
import type { Meter } from './step-meter.ts'
import { componentsOf } from './field-names.ts'
import { Broken, refusedOperator, refusedPath, refusedStage, refusedVariable } from './refusal.ts'
import { find, pathsOf, type Found, type Shape } from './document-shape.ts'
import type { Variables } from './variables.ts'
import { missing, type Vocabulary } from './minimum-versions.ts'

export interface Scope {
  readonly exposed: Exposed
  readonly shape: Shape
  /** Of the projection that this pipeline stands behind. */
  readonly barrier: Barrier
  /** Bound by $let, $map, $lookup …, without their $$, and how large they are. */
  readonly variables: Variables<Extent>
  /** What the stage asks of the database. */
  readonly meter: Meter
  /** DESCEND, PRUNE and KEEP, within $redact. */
  readonly redacting: boolean
  /** IDX, within $map, $filter and $reduce. */
  readonly iterating: boolean
}

const SYSTEM = new Set(['ROOT', 'CURRENT', 'REMOVE'])
const REDACT = new Set(['DESCEND', 'PRUNE', 'KEEP'])
const VARIABLE = /^[a-z\u0080-\uffff][\w\u0080-\uffff]*$/

export function withVariables(
  scope: Scope,
  names: readonly string[],
  extents: ReadonlyMap<string, Extent> = new Map(),
): Scope {
  for (const name of names) {
    if (!VARIABLE.test(name))
      throw new Broken('the name of a variable starts with a small letter; letters, digits and _ follow')
  }
  const own = new Map(names.map((name) => [name, extents.get(name) ?? STORED]))
  return { ...scope, variables: scope.variables.with(own) }
}

/** A path as written (address.city). Throws Broken where no path is written so, Refusal where it leads to what is hidden. */
export function locate(path: string, scope: Scope): Located {
  const components = componentsOf(path)
  scope.meter.work.spend(components.length)
  const found = find(scope.shape, components)
  if (found.kind === 'hidden') throw refusedPath(path, fieldsHint(path, scope.shape))
  return { ...found, components }
}

export type Located = Found & { readonly components: readonly string[] }

/** As locate(), and what is shown in part is read behind the projection alone. */
export function resolve(path: string, scope: Scope): Located {
  const found = locate(path, scope)
  hold(found, scope)
  return found
}

/**
 * What is shown in part must have gone through the projection, which mongod 6.0 drops in front of a $group that reads
 * whole documents: a wall is put behind it.
 */
export function hold(found: Found, scope: Scope): void {
  if (found.kind !== 'parent') return
  scope.barrier.raise()
  for (const cut of [...found.crossed, ...found.shape.cut]) cut.raise()
}

/** The fields that there are, the nearest first. */
export function fieldsHint(path: string, shape: Shape): string {
  const paths = pathsOf(shape)
  if (paths.length === 0) return 'No field is known here.'
  const near = nearest(path, paths)
  const question = near.length === 0 ? '' : `${didYouMean(near)} `
  const told = [...new Set([...near, ...paths])]
  const listed = told.length > FIELDS_TOLD ? `${told.slice(0, FIELDS_TOLD).join(', ')} …` : told.join(', ')
  return `${question}Fields here: ${listed}.`
}

const FIELDS_TOLD = 30

/** $$name or $$name.path, as written. Returns the shape of what it stands for, undefined where nothing is known. */
export function variable(written: string, scope: Scope): Found | undefined {
  const dot = written.indexOf('.')
  const name = written.slice(2, dot === -1 ? undefined : dot)
  const path = dot === -1 ? undefined : written.slice(dot + 1)
  if (scope.variables.has(name) || name === 'NOW') {
    if (path !== undefined) componentsOf(path)
    return undefined
  }
  if (name === 'ROOT' || name === 'CURRENT') {
    if (path !== undefined) return resolve(path, scope)
    scope.barrier.raise()
    return { kind: 'parent', shape: scope.shape, numeric: false, isNamed: false, crossed: [] }
  }
  if (path === undefined && name === 'IDX' && scope.iterating) {
    needVersion('expression', '$$IDX', scope.exposed)
    return undefined
  }
  if (path === undefined && (SYSTEM.has(name) || (scope.redacting && REDACT.has(name)))) return undefined
  throw refusedVariable(`$$${name}`, variablesHint(name, scope))
}

const VARIABLES_TOLD = 20

function variablesHint(name: string, { variables }: Scope): string {
  const bound = [...variables.names()]
  const told = ['ROOT', 'CURRENT', 'NOW', 'REMOVE', ...bound.slice(0, VARIABLES_TOLD)].map((known) => `$$${known}`)
  const near = didYouMean(nearest(name, bound).map((known) => `$$${known}`))
  return `${near === '' ? '' : `${near} `}Variables here: ${told.join(', ')}${bound.length > VARIABLES_TOLD ? ' …' : ''}.`
}

/** Throws Refusal where the captured server is older than a name. */
export function needVersion(vocabulary: Vocabulary, name: string, exposed: Exposed): void {
  const version = missing(vocabulary, name, exposed.server)
  if (version === null) return
  const refused = vocabulary === 'stage' ? refusedStage : refusedOperator
  throw refused(
    name,
    `this server, MongoDB ${exposed.versionText}, does not know it`,
    `${name} needs MongoDB ${version} or newer; write the query without it.`,
  )
}
