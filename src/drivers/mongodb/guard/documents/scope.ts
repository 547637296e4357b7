// What a filter or an expression can name: fields and variables. Also the server that will run it.
import { didYouMean, nearest } from '../../../nearest.ts'
import type { Barrier } from './barrier.ts'
import type { Exposed } from './exposed.ts'
import { STORED, type Extent } from '../bounds/value-size.ts'
import type { Meter } from '../bounds/step-meter.ts'
import { componentsOf } from '../body/field-names.ts'
import { Broken, refusedOperator, refusedPath, refusedStage, refusedVariable, type Hint } from '../refusals/refusal.ts'
import { find, pathsOf, type Found, type Shape } from './document-shape.ts'
import type { Variables } from './variables.ts'
import { missing, type Vocabulary } from '../allowed/minimum-versions.ts'

export interface Scope {
  readonly exposed: Exposed
  readonly shape: Shape
  /**
   * Inside $redact, the size of the object into which it has descended. Null if the expression sees the whole document.
   */
  readonly part: string | null
  /** The barrier of the projection before this pipeline (barrier.ts). */
  readonly barrier: Barrier
  /** The variables of $let, $map, $lookup …, without $$. */
  readonly variables: Variables<Extent>
  /** Counts the work of the stage in the database. */
  readonly meter: Meter
  /** True inside $redact, which defines DESCEND, PRUNE and KEEP. */
  readonly redacting: boolean
  /** True inside $map, $filter and $reduce, which define IDX. */
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
      throw new Broken('a variable name must start with a lower-case letter and contain only letters, digits and _')
    if (name.startsWith('vt_')) throw new Broken('a variable name must not start with vt_')
  }
  const own = new Map(names.map((name) => [name, extents.get(name) ?? STORED]))
  return { ...scope, variables: scope.variables.with(own) }
}

/** Looks up a path such as address.city. Throws Broken for a malformed path, and Refusal for a hidden path. */
export function locate(path: string, scope: Scope): Located {
  const components = componentsOf(path)
  scope.meter.work.spend(components.length)
  const found = find(scope.shape, components)
  if (found.kind === 'hidden') throw refusedPath(path, fieldsHint(path, scope.shape))
  return { ...found, components }
}

export type Located = Found & { readonly components: readonly string[] }

/**
 * Like locate(). If the value is partly exposed, also raises the barriers that keep readers of it after the projection.
 */
export function resolve(path: string, scope: Scope): Located {
  const found = locate(path, scope)
  hold(found, scope)
  return found
}

/**
 * A partly exposed value must always go through the projection. Without a barrier, mongod 6.0 drops a projection before
 * a $group that reads whole documents.
 */
export function hold(found: Found, scope: Scope): void {
  if (found.kind !== 'parent') return
  scope.barrier.raise()
  for (const cut of [...found.crossed, ...found.shape.cut]) cut.raise()
}

/** Returns a hint with the known fields. The most similar name comes first. */
export function fieldsHint(path: string, shape: Shape): Hint {
  const paths = pathsOf(shape)
  if (paths.length === 0) return { text: 'No field is known here.', near: [] }
  const near = nearest(path, paths)
  const question = near.length === 0 ? '' : `${didYouMean(near)} `
  const told = [...new Set([...near, ...paths])]
  const listed = told.length > FIELDS_TOLD ? `${told.slice(0, FIELDS_TOLD).join(', ')} …` : told.join(', ')
  return { text: `${question}Fields here: ${listed}.`, near }
}

const FIELDS_TOLD = 30

/** Looks up $$name or $$name.path. Returns undefined if nothing is known about its fields. */
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

function variablesHint(name: string, { variables }: Scope): Hint {
  const bound = [...variables.names()]
  const told = ['ROOT', 'CURRENT', 'NOW', 'REMOVE', ...bound.slice(0, VARIABLES_TOLD)].map((known) => `$$${known}`)
  const near = nearest(name, bound).map((known) => `$$${known}`)
  const listed = `Variables here: ${told.join(', ')}${bound.length > VARIABLES_TOLD ? ' …' : ''}.`
  return { text: near.length === 0 ? listed : `${didYouMean(near)} ${listed}`, near }
}

/** Throws Refusal if the server is older than the name. */
export function needVersion(vocabulary: Vocabulary, name: string, exposed: Exposed): void {
  const version = missing(vocabulary, name, exposed.server)
  if (version === null) return
  const refused = vocabulary === 'stage' ? refusedStage : refusedOperator
  throw refused(
    name,
    `this server (MongoDB ${exposed.versionText}) does not support it`,
    `${name} needs MongoDB ${version} or newer; write the query without it.`,
  )
}
