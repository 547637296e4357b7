// $project, $set, $addFields, $unset: which fields there are behind them.
import { arrayOf, flagOf, textOf } from './arguments.ts'
import { computed } from './computed.ts'
import { expression } from './expression.ts'
import { outputPath, type Flow } from './flow.ts'
import { isDocument, type Bson, type BsonDocument } from '../query.ts'
import { Broken } from './refusal.ts'
import { resolve, type Scope } from './scope.ts'
import { closed, isPlace, WHOLE, withField, withoutField, type Shape } from './shape.ts'

interface Leaf {
  readonly path: string
  readonly flag: 0 | 1 | null
  readonly value: Bson
}

/** The fields of a specification with nested objects, as paths. */
function leavesOf(of: string, spec: BsonDocument, prefix: string, flags: boolean): Leaf[] {
  return Object.entries(spec).flatMap(([name, value]) => {
    const path = prefix + name
    outputPath(of, name)
    const nested = isDocument(value) && !Object.keys(value).some((key) => key.startsWith('$'))
    if (!nested) return [{ path, flag: flags ? flagOf(value) : null, value }]
    if (Object.keys(value).length > 0) return leavesOf(of, value, `${path}.`, flags)
    if (flags) throw new Broken(`${of}: an empty object says nothing of ${path}`)
    return [{ path, flag: null, value }]
  })
}

export function project(value: Bson, flow: Flow): void {
  if (!isDocument(value) || Object.keys(value).length === 0) throw new Broken('$project takes an object of fields')
  const leaves = leavesOf('$project', value, '', true)
  const excludes =
    leaves.some((leaf) => leaf.flag === 0 && leaf.path !== '_id') || leaves.every((leaf) => leaf.flag === 0)
  const { scope } = flow
  flow.out.push({ $project: printed(value, true, scope) })
  if (excludes) for (const leaf of leaves) exclude(leaf, flow)
  else include(leaves, flow, scope)
}

/** The specification anew, its expressions checked. */
function printed(spec: BsonDocument, flags: boolean, scope: Scope): BsonDocument {
  const fields: Record<string, Bson> = {}
  for (const [name, value] of Object.entries(spec)) {
    const nested = isDocument(value) && !Object.keys(value).some((key) => key.startsWith('$'))
    if (nested) fields[name] = printed(value, flags, scope)
    else fields[name] = flags && flagOf(value) !== null ? value : expression(value, scope)
  }
  return fields
}

/** Leaving out what is not there tells nothing, so any name may be left out. */
function exclude(leaf: Leaf, flow: Flow): void {
  if (leaf.flag === 0) drop(leaf.path, flow)
  else if (leaf.flag === null) throw new Broken('$project either leaves fields out or says which there are')
}

function drop(path: string, flow: Flow): void {
  const components = path.split('.')
  flow.shape = withoutField(flow.shape, components)
  if (components.length === 1) flow.columns = flow.columns.filter((name) => name !== path)
}

function include(leaves: readonly Leaf[], flow: Flow, scope: Scope): void {
  const { shape } = flow
  let kept: Shape = closed(new Map())
  const columns = new Set<string>()
  const id = shape.kids?.get('_id') ?? (shape.open ? WHOLE : undefined)
  if (id !== undefined && !leaves.some((leaf) => leaf.path === '_id' || leaf.path.startsWith('_id.'))) {
    kept = withField(kept, ['_id'], id)
    if (flow.columns.includes('_id')) columns.add('_id')
  }
  for (const { path, flag, value } of leaves) {
    if (flag === 0) continue
    const components = path.split('.')
    if (flag === null) kept = withField(kept, components, computed(value, scope))
    else kept = pick(kept, shape, resolve(path, scope).components)
    columns.add(components[0] ?? '')
  }
  flow.shape = kept
  flow.columns = [...columns]
}

/** `kept` and the field at this path of `from`, with what is known of the objects on the way. */
function pick(kept: Shape, from: Shape, [name, ...below]: readonly string[]): Shape {
  if (name === undefined) return from
  if (isPlace(name) && from.kids?.has(name) !== true) return pick(kept, from, below)
  const source = from.kids === null ? { ...WHOLE, cut: from.cut } : (from.kids.get(name) ?? WHOLE)
  if (kept.kids === null) return kept
  const known = kept.kids.get(name) ?? { kids: new Map<string, Shape>(), open: false, cut: source.cut }
  const kids = new Map(kept.kids)
  kids.set(name, below.length === 0 ? source : pick(known, source, below))
  return { ...kept, kids }
}

export function set(name: '$set' | '$addFields', value: Bson, flow: Flow): void {
  if (!isDocument(value) || Object.keys(value).length === 0) throw new Broken(`${name} takes an object of fields`)
  const { scope } = flow
  flow.out.push({ [name]: printed(value, false, scope) })
  for (const leaf of leavesOf(name, value, '', false)) flow.set(name, leaf.path, computed(leaf.value, scope))
}

export function unset(value: Bson, flow: Flow): void {
  const paths = typeof value === 'string' ? [value] : arrayOf('$unset', value).map((path) => textOf('$unset', path))
  if (paths.length === 0) throw new Broken('$unset names no field')
  for (const path of paths) {
    outputPath('$unset', path)
    drop(path, flow)
  }
  flow.out.push({ $unset: paths })
}
