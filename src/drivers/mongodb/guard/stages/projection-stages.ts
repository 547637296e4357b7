// Confines $project, $set, $addFields and $unset, and finds the fields of the documents after them.
import { arrayOf, flagOf, textOf } from '../body/read-arguments.ts'
import { computed, type Computed } from '../expressions/computed-value.ts'
import { isConstant } from '../bounds/amount.ts'
import { list } from '../bounds/value-size.ts'
import type { Flow } from './pipeline-state.ts'
import { outputPath } from '../body/field-names.ts'
import { isDocument, type Bson, type BsonDocument } from '../../confined-query.ts'
import { within } from '../refusals/error-place.ts'
import { Broken } from '../refusals/refusal.ts'
import { resolve, type Scope } from '../documents/scope.ts'
import { closed, Draft, objectsAt, shapeWith, valueAt, WHOLE, type Shape } from '../documents/document-shape.ts'

interface Leaf {
  readonly path: string
  readonly flag: 0 | 1 | null
  /** WHOLE if no value is computed. */
  readonly shape: Shape
}

interface Read {
  readonly printed: BsonDocument
  /** All fields at all depths. */
  readonly leaves: readonly Leaf[]
}

/** Prints the specification again, and checks its expressions. */
function read(of: string, spec: BsonDocument, scope: Scope): Read {
  const leaves: Leaf[] = []
  return { printed: readInto(leaves, '', { of, spec, scope }), leaves }
}

interface Part {
  readonly of: string
  readonly spec: BsonDocument
  readonly scope: Scope
}

/** The value is computed once for each object that gets the field. */
function computedAt(path: readonly string[], value: Bson, scope: Scope): Pick<Computed, 'printed' | 'shape'> {
  const above = path.slice(0, -1)
  if (above.length === 0) return computed(value, scope)
  const items = objectsAt(scope.shape, path)
  const array = { items, bytes: valueAt(scope.shape, above.slice(0, 1)).bytes }
  const found = scope.meter.loop(array, scope.meter.element(), () => computed(value, scope))
  if (isConstant(items)) return found
  const { printed, extent } = found
  return { printed, shape: shapeWith(scope.meter.made(list(extent, items))) }
}

function readInto(leaves: Leaf[], prefix: string, { of, spec, scope }: Part): BsonDocument {
  const printed: Record<string, Bson> = {}
  const flags = of === '$project'
  for (const [name, value] of Object.entries(spec)) {
    const path = prefix + name
    const components = outputPath(of, path)
    scope.meter.work.spend(components.length)
    const nested = isDocument(value) && !Object.keys(value).some((key) => key.startsWith('$'))
    if (nested && Object.keys(value).length > 0) {
      printed[name] = readInto(leaves, `${path}.`, { of, spec: value, scope })
      continue
    }
    if (nested && flags) throw new Broken(`${of}: ${path} must not be an empty object`)
    const flag = flags ? flagOf(value) : null
    const made = within(spec, name, () => {
      if (flag === 1) resolve(path, scope)
      return flag === null ? computedAt(components, value, scope) : { printed: value, shape: WHOLE }
    })
    printed[name] = made.printed
    leaves.push({ path, flag, shape: made.shape })
  }
  return printed
}

export function project(value: Bson, flow: Flow): void {
  if (!isDocument(value) || Object.keys(value).length === 0) throw new Broken('$project takes an object of fields')
  const { printed, leaves } = read('$project', value, flow.scope)
  flow.out.push({ $project: printed })
  const excludes =
    leaves.some((leaf) => leaf.flag === 0 && leaf.path !== '_id') || leaves.every((leaf) => leaf.flag === 0)
  if (excludes) exclude(leaves, flow)
  else include(leaves, flow)
}

/** To exclude a hidden or missing field reveals nothing, so any name can be excluded. */
function exclude(leaves: readonly Leaf[], flow: Flow): void {
  if (leaves.some((leaf) => leaf.flag === null)) {
    throw new Broken('$project either includes fields or excludes fields, not both')
  }
  flow.drop(
    '$project',
    leaves.filter((leaf) => leaf.flag === 0).map((leaf) => leaf.path),
  )
}

function include(leaves: readonly Leaf[], flow: Flow): void {
  const { shape, scope } = flow
  const kept = new Draft(closed(new Map()), flow.whole.work)
  const columns = new Set<string>()
  const id = shape.kids?.get('_id') ?? (shape.open ? WHOLE : undefined)
  if (id !== undefined && !leaves.some((leaf) => leaf.path === '_id' || leaf.path.startsWith('_id.'))) {
    kept.set(['_id'], id)
    if (flow.columns.includes('_id')) columns.add('_id')
  }
  for (const leaf of leaves) {
    if (leaf.flag === 0) continue
    const components = leaf.flag === null ? leaf.path.split('.') : resolve(leaf.path, scope).components
    flow.countObjects(components)
    if (leaf.flag === null) kept.set(components, leaf.shape)
    else kept.pick(components, shape)
    columns.add(components[0] ?? '')
  }
  flow.shape = kept.finish()
  flow.columns = [...columns]
}

export function set(name: '$set' | '$addFields', value: Bson, flow: Flow): void {
  if (!isDocument(value) || Object.keys(value).length === 0) throw new Broken(`${name} takes an object of fields`)
  const { printed, leaves } = read(name, value, flow.scope)
  flow.out.push({ [name]: printed })
  flow.set(
    name,
    leaves.map(({ path, shape }) => [path, shape]),
  )
}

export function unset(value: Bson, flow: Flow): void {
  const paths = typeof value === 'string' ? [value] : arrayOf('$unset', value).map((path) => textOf('$unset', path))
  if (paths.length === 0) throw new Broken('$unset must name at least one field')
  flow.drop('$unset', paths)
  flow.out.push({ $unset: paths })
}
