// Stages that make new documents out of many: $group, $bucket, $bucketAuto, $sortByCount, $count; and the windows.
import { accumulator, bounds, windowOperator } from './accumulator.ts'
import { arrayOf, checkName, fieldsOf, textOf, wholeOf } from './arguments.ts'
import { computed } from './computed.ts'
import { expression } from './expression.ts'
import { outputPath, type Flow } from './flow.ts'
import { isDocument, type Bson, type BsonDocument } from '../query.ts'
import { Broken, shown } from './refusal.ts'
import { resolve } from './scope.ts'
import { closed, WHOLE, type Shape } from './shape.ts'
import { sortSpecOf } from './sort.ts'

/** `written`: what the query itself names; MongoDB's own `count` is a column only where a document holds it. */
function made(flow: Flow, id: Shape, names: readonly string[], written = names): void {
  flow.shape = closed(new Map([['_id', id], ...names.map((name): [string, Shape] => [name, WHOLE])]))
  flow.columns = ['_id', ...written]
}

function outputs(of: string, value: BsonDocument, flow: Flow): BsonDocument {
  const printed: Record<string, Bson> = {}
  for (const [name, below] of Object.entries(value)) {
    checkName(of, name)
    printed[name] = accumulator(of, below, flow.scope)
  }
  return printed
}

export function group(value: Bson, flow: Flow): void {
  if (!isDocument(value) || value['_id'] === undefined) throw new Broken('$group takes an object with _id')
  const { _id: id, ...rest } = value
  const { scope } = flow
  const printed = { _id: expression(id, scope), ...outputs('$group', rest, flow) }
  flow.out.push({ $group: printed })
  made(flow, computed(id, scope), Object.keys(rest))
}

export function bucket(value: Bson, flow: Flow): void {
  const read = fieldsOf('$bucket', value, ['groupBy', 'boundaries'], ['default', 'output'])
  const { scope } = flow
  const printed = {
    groupBy: expression(read['groupBy'], scope),
    boundaries: arrayOf('$bucket', read['boundaries']).map((bound) => expression(bound, scope)),
    ...(read['default'] === undefined ? {} : { default: expression(read['default'], scope) }),
    ...bucketOutput('$bucket', read['output'], flow),
  }
  flow.out.push({ $bucket: printed })
  made(flow, WHOLE, Object.keys(printed.output ?? { count: 0 }), Object.keys(printed.output ?? {}))
}

export function bucketAuto(value: Bson, flow: Flow): void {
  const read = fieldsOf('$bucketAuto', value, ['groupBy', 'buckets'], ['output', 'granularity'])
  const { granularity } = read
  const printed = {
    groupBy: expression(read['groupBy'], flow.scope),
    buckets: wholeOf('$bucketAuto', read['buckets'], 1),
    ...(granularity === undefined ? {} : { granularity: textOf('$bucketAuto', granularity) }),
    ...bucketOutput('$bucketAuto', read['output'], flow),
  }
  flow.out.push({ $bucketAuto: printed })
  made(flow, WHOLE, Object.keys(printed.output ?? { count: 0 }), Object.keys(printed.output ?? {}))
}

function bucketOutput(of: string, value: Bson | undefined, flow: Flow): { output?: BsonDocument } {
  if (value === undefined) return {}
  if (!isDocument(value)) throw new Broken(`${of} takes an object for output`)
  return { output: outputs(of, value, flow) }
}

export function sortByCount(value: Bson, flow: Flow): void {
  const { scope } = flow
  flow.out.push({ $sortByCount: expression(value, scope) })
  made(flow, computed(value, scope), ['count'], [])
}

export function count(value: Bson, flow: Flow): void {
  const name = textOf('$count', value)
  checkName('$count', name)
  flow.out.push({ $count: name })
  flow.shape = closed(new Map([[name, WHOLE]]))
  flow.columns = [name]
}

export function setWindowFields(value: Bson, flow: Flow): void {
  const read = fieldsOf('$setWindowFields', value, ['output'], ['partitionBy', 'sortBy'])
  const { partitionBy, output } = read
  if (!isDocument(output)) throw new Broken('$setWindowFields takes an object for output')
  const { scope } = flow
  const sortBy = sortBySpec('$setWindowFields', read['sortBy'], flow)
  const fields: Record<string, Bson> = {}
  for (const [name, below] of Object.entries(output)) {
    outputPath('$setWindowFields', name)
    fields[name] = windowOperator(below, scope, Object.keys(sortBy.sortBy ?? {}).length)
  }
  flow.out.push({
    $setWindowFields: {
      ...(partitionBy === undefined ? {} : { partitionBy: expression(partitionBy, scope) }),
      ...sortBy,
      output: fields,
    },
  })
  for (const name of Object.keys(fields)) flow.set('$setWindowFields', name, WHOLE)
}

function sortBySpec(of: string, value: Bson | undefined, flow: Flow): { sortBy?: BsonDocument } {
  if (value === undefined) return {}
  if (!isDocument(value)) throw new Broken(`${of} takes an object for sortBy`)
  return { sortBy: sortSpecOf(of, value, flow.scope).printed }
}

function partitionFields(of: string, value: Bson | undefined, flow: Flow): { partitionByFields?: readonly string[] } {
  if (value === undefined) return {}
  const paths = arrayOf(of, value).map((path) => textOf(of, path))
  for (const path of paths) resolve(path, flow.scope)
  return { partitionByFields: paths }
}

export function densify(value: Bson, flow: Flow): void {
  const read = fieldsOf('$densify', value, ['field', 'range'], ['partitionByFields'])
  const field = textOf('$densify', read['field'])
  resolve(field, flow.scope)
  const range = fieldsOf('range', read['range'], ['step', 'bounds'], ['unit'])
  const { step = null, bounds: ends = null, unit } = range
  if (isDocument(step)) throw new Broken('$densify takes a number for step')
  if (typeof ends === 'string' ? ends !== 'full' && ends !== 'partition' : !bounds(ends)) {
    throw new Broken('$densify has bounds full, partition, or a lower and an upper one')
  }
  flow.out.push({
    $densify: {
      field,
      ...partitionFields('$densify', read['partitionByFields'], flow),
      range: { step, bounds: ends, ...(unit === undefined ? {} : { unit: textOf('$densify', unit) }) },
    },
  })
}

export function fill(value: Bson, flow: Flow): void {
  const read = fieldsOf('$fill', value, ['output'], ['partitionBy', 'partitionByFields', 'sortBy'])
  const { partitionBy, output } = read
  if (!isDocument(output)) throw new Broken('$fill takes an object for output')
  const { scope } = flow
  const fields: Record<string, Bson> = {}
  for (const [name, below] of Object.entries(output)) {
    outputPath('$fill', name)
    fields[name] = filling(below, flow)
  }
  flow.out.push({
    $fill: {
      ...(partitionBy === undefined ? {} : { partitionBy: expression(partitionBy, scope) }),
      ...partitionFields('$fill', read['partitionByFields'], flow),
      ...sortBySpec('$fill', read['sortBy'], flow),
      output: fields,
    },
  })
  for (const name of Object.keys(fields)) flow.set('$fill', name, WHOLE)
}

function filling(value: Bson, flow: Flow): BsonDocument {
  const { value: constant, method } = fieldsOf('an output of $fill', value, [], ['value', 'method'])
  if ((constant === undefined) === (method === undefined))
    throw new Broken('$fill takes either value or method for a field')
  if (constant !== undefined) return { value: expression(constant, flow.scope) }
  const name = textOf('$fill', method)
  if (name !== 'linear' && name !== 'locf') throw new Broken(`$fill: ${shown(name)} is no method`)
  return { method: name }
}
