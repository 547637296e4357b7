// Writes random filters and pipelines from a seed. Most use exposed paths and stored values. Some use a hidden path, a
// partly exposed object, or an array index.
import { BSON, type Document } from 'mongodb'
import type { Body } from './ask.ts'
import { EXPOSED, isDocument } from './fixture.ts'

/** The known values in Extended JSON, by collection and path. */
export type Known = ReadonlyMap<string, ReadonlyMap<string, readonly unknown[]>>

export interface RandomQuery {
  readonly body: Body
  /** True if the query names nothing hidden. It must then be answered. */
  readonly clean: boolean
  /** True if the query fixes the order of the documents. */
  readonly ordered: boolean
  /** True if the query does not fix the order of array elements. */
  readonly loose: boolean
}

/**
 * Collects paths and values from the copy without hidden data. They are sorted, because mongod returns the fields of a
 * time series in another order each time, and a seed must always give the same queries.
 */
export function know(documents: ReadonlyMap<string, readonly Document[]>): Known {
  const known = new Map<string, Map<string, unknown[]>>()
  for (const [collection, list] of documents) {
    const paths = new Map<string, unknown[]>()
    for (const document of list) gather(document, '', paths)
    known.set(collection, new Map([...paths].sort(([one], [other]) => (one < other ? -1 : 1))))
  }
  return known
}

function gather(value: unknown, path: string, paths: Map<string, unknown[]>): void {
  if (path !== '') {
    const written: unknown = JSON.parse(BSON.EJSON.stringify({ value }, { relaxed: false })).value
    // A query cannot contain __proto__, and a literal cannot contain $c.
    const isSent = !/"(?:__proto__|\$c)":/.test(JSON.stringify(written))
    if (isSent && !/"(\$[a-z]*[A-Z]?[a-z]*)":.*\$code/.test(JSON.stringify(written)))
      paths.set(path, [...(paths.get(path) ?? []), written].slice(-25))
  }
  if (Array.isArray(value)) for (const element of value) gather(element, path, paths)
  else if (isDocument(value))
    for (const [name, below] of Object.entries(value))
      if (isSaid(name)) gather(below, path === '' ? name : `${path}.${name}`, paths)
}

/** True if the name can be part of a path. */
function isSaid(name: string): boolean {
  return name !== '' && name !== '__proto__' && !name.includes('.') && !name.startsWith('$')
}

const HIDDEN: Readonly<Record<string, readonly string[]>> = {
  people: ['ssn', 'pay', 'home.street', 'cards.number', 'cards.0.number'],
  orders: ['margin', 'lines.cost', 'lines.tax.office'],
  spots: ['_id', 'owner', 'grid.s', 'deep.a.e', 'deep.a.b.d'],
  gauge: ['raw', 'meta.owner', 'parts.y'],
  people_made: ['house.street', 'cards.number', 'name'],
  people_view: ['ssn', 'cards.number'],
  odd: ['w.y', 'toString', 'nothing'],
}

interface State {
  paths: Map<string, readonly unknown[]>
  readonly collection: string
  /** A path by which the documents have a total order, or null. */
  key: string | null
  ordered: boolean
  loose: boolean
  clean: boolean
}

export class Generator {
  readonly #known: Known
  #state: number

  constructor(seed: number, known: Known) {
    this.#known = known
    this.#state = Math.imul(seed, 2_654_435_761) | 1
  }

  next(): RandomQuery {
    const collection = this.#pick(Object.keys(EXPOSED))
    const state = this.#fresh(collection)
    const sorts = this.#chance(0.15)
    const filter = this.#chance(sorts ? 0.3 : 0.75) ? this.#filter(state, 0) : {}
    const first = sorts ? this.#sortedThroughParts(state) : []
    const pipeline = [...first, ...(this.#chance(0.6) ? this.#stages(state, 1 + this.#below(4), false) : [])]
    const { clean, ordered, loose } = state
    return { body: { collection, filter, pipeline }, clean, ordered, loose }
  }

  #fresh(collection: string): State {
    const key = collection === 'spots' ? 'label' : '_id'
    return { paths: new Map(this.#known.get(collection)), collection, key, ordered: false, loose: false, clean: true }
  }

  #random(): number {
    // xorshift
    this.#state ^= this.#state << 13
    this.#state ^= this.#state >>> 17
    this.#state ^= this.#state << 5
    return (this.#state >>> 0) / 2 ** 32
  }

  #below(n: number): number {
    return Math.floor(this.#random() * n)
  }

  #chance(share: number): boolean {
    return this.#random() < share
  }

  #pick<T>(list: readonly T[]): T {
    return list[this.#below(list.length)] as T
  }

  #path(state: State): string {
    if (this.#chance(0.02)) {
      state.clean = false
      return this.#pick(HIDDEN[state.collection] ?? ['nothing'])
    }
    return this.#pick([...state.paths.keys()])
  }

  #value(path: string, state: State): unknown {
    if (this.#chance(0.2))
      return this.#pick([null, null, 1, 'x', [], {}, [null], { $minKey: 1 }, { $maxKey: 1 }, false])
    return this.#pick(state.paths.get(path) ?? ['SECRET'])
  }

  #condition(path: string, state: State, depth: number): unknown {
    const value = (): unknown => this.#value(path, state)
    switch (this.#below(14)) {
      case 0:
        return value()
      case 1:
        return { $eq: value() }
      case 2:
        return { $ne: value() }
      case 3:
      case 4:
        return { [this.#pick(['$gt', '$gte', '$lt', '$lte'])]: value() }
      case 5:
        return { [this.#pick(['$in', '$nin', '$all'])]: [value(), value()] }
      case 6:
        return { $exists: this.#chance(0.5) }
      case 7:
        return {
          $type: this.#pick(['string', 'int', 'array', 'object', 'null', 'number', 'objectId', ['date', 'decimal']]),
        }
      case 8:
        return { $size: this.#below(4) }
      case 9:
        return { $regex: this.#pick(['^N', '1', 'a$', '^C.*2', '^SECRET']), $options: 'i' }
      case 10:
        return { $elemMatch: this.#chance(0.5) ? { $exists: true } : { [this.#pick(['$gte', '$ne', '$eq'])]: value() } }
      case 11:
        return { $mod: [2, 0] }
      default: {
        if (depth > 1) return { $gte: value() }
        const inner = this.#condition(path, state, depth + 1)
        return {
          $not: isDocument(inner) && Object.keys(inner).some((name) => OPERATOR.has(name)) ? inner : { $eq: inner },
        }
      }
    }
  }

  #filter(state: State, depth: number): Document {
    const filter: Document = {}
    for (let n = this.#chance(0.7) ? 1 : 2; n > 0; n--) {
      if (depth < 2 && this.#chance(0.2)) {
        filter[this.#pick(['$and', '$or', '$nor'])] = [this.#filter(state, depth + 1), this.#filter(state, depth + 1)]
        continue
      }
      const path = this.#path(state)
      const kids = [...state.paths.keys()].filter((other) => other.startsWith(`${path}.`))
      if (kids.length > 0 && this.#chance(0.4)) {
        const kid = this.#pick(kids)
        filter[path] = { $elemMatch: { [kid.slice(path.length + 1)]: this.#condition(kid, state, 1) } }
      } else
        filter[this.#chance(0.04) && path.includes('.') ? path.replace('.', '.0.') : path] = this.#condition(
          path,
          state,
          0,
        )
    }
    return filter
  }

  #expression(state: State, depth: number): unknown {
    const path = (): string => `$${this.#path(state)}`
    const inner = (): unknown => this.#expression(state, depth + 1)
    const list = (): unknown => {
      const of = path()
      return { $cond: [{ $isArray: [of] }, of, []] }
    }
    if (depth > 2 || this.#chance(0.35)) return path()
    if (depth < 2 && this.#chance(0.08)) return this.#loop(state)
    switch (this.#below(15)) {
      case 0:
        return { $type: inner() }
      case 1:
        return { $ifNull: [inner(), 'none'] }
      case 2:
        return { $cond: [{ $eq: [inner(), inner()] }, inner(), 0] }
      case 3:
        state.loose = true
        return this.#pick([
          '$$ROOT',
          '$$CURRENT',
          { $objectToArray: '$$ROOT' },
          { $mergeObjects: ['$$ROOT', { z: 1 }] },
        ])
      case 4:
        return { $size: list() }
      case 5:
        return { $cmp: [inner(), inner()] }
      case 6:
        return { a: inner(), b: [inner(), 'x'] }
      case 7:
        return { $let: { vars: { v: inner() }, in: { $ifNull: ['$$v', 'nil'] } } }
      case 8:
        return { $map: { input: list(), as: 'm', in: [{ $type: '$$m' }, '$$m'] } }
      case 9:
        return { $reduce: { input: list(), initialValue: 0, in: { $add: ['$$value', 1] } } }
      case 10:
        return { $filter: { input: list(), cond: { $ne: ['$$this', null] } } }
      case 11:
        return {
          $getField: {
            field: this.#pick([...state.paths.keys()].filter((name) => !name.includes('.'))),
            input: '$$ROOT',
          },
        }
      case 12:
        return { $convert: { input: inner(), to: 'bool', onError: 'no', onNull: 'null' } }
      case 13:
        return { $arrayElemAt: [list(), this.#pick([0, -1, 1])] }
      default:
        return { $literal: this.#pick(['$ssn', { $where: 1 }, [null]]) }
    }
  }

  /** The guard prints these expressions in another form: computed ranges, values that are read often, slow stages. */
  #loop(state: State): unknown {
    const path = (): string => `$${this.#path(state)}`
    const list = path()
    const size = { $size: { $cond: [{ $isArray: [list] }, list, []] } }
    const over = (n: number, body: unknown): unknown => ({
      $map: { input: { $range: [0, n] }, as: 'r', in: body },
    })
    switch (this.#below(5)) {
      case 0:
        return { $range: [{ $multiply: [-1, size] }, this.#pick([3, size]), this.#pick([1, 2, -1])] }
      case 1:
        return { $range: [{ $multiply: [size, 20_000] }, 0] }
      case 2:
        return { $arrayElemAt: [over(40, { $concatArrays: [[path(), path()], ['$$r']] }), 39] }
      case 3:
        state.loose = true
        return { $arrayElemAt: [over(60, { $objectToArray: '$$ROOT' }), -1] }
      default:
        return { $size: over(2_500, { $concat: [{ $type: path() }, 'x'.repeat(2_000)] }) }
    }
  }

  /** Sorts by one or two paths through partly exposed objects, and keeps the first documents. The key breaks ties. */
  #sortedThroughParts(state: State): Document[] {
    const { key } = state
    const parts = (EXPOSED[state.collection] ?? []).filter((path) => path.includes('.'))
    if (key === null || parts.length === 0) return []
    const some = [this.#pick(parts), this.#pick(parts)].slice(this.#below(2))
    state.ordered = true
    return [
      { $sort: Object.fromEntries([...some.map((path) => [path, this.#pick([1, 1, -1])]), [key, 1]]) },
      ...(this.#chance(0.2) ? [{ $skip: this.#below(8) }] : []),
      ...(this.#chance(0.8) ? [{ $limit: 1 + this.#below(6) }] : []),
    ]
  }

  #stages(state: State, count: number, nested: boolean): Document[] {
    return Array.from({ length: count }, () => this.#stage(state, nested)).flat()
  }

  #set(state: State, name: string): void {
    for (const path of [...state.paths.keys()])
      if (path === name || path.startsWith(`${name}.`)) state.paths.delete(path)
    state.paths.set(name, [1, 'x', null])
    if (state.key === name) state.key = null
  }

  #only(state: State, names: readonly string[], key: string | null): void {
    state.paths = new Map(names.map((name) => [name, [1, 'x', 0, null]]))
    state.key = key
    state.ordered = false
  }

  #stage(state: State, nested: boolean): Document[] {
    switch (this.#below(nested ? 15 : 21)) {
      case 0:
      case 1:
        return [{ $match: this.#filter(state, 0) }]
      case 2:
        return [
          {
            $match: {
              $expr: {
                [this.#pick(['$eq', '$ne', '$gt', '$lte'])]: [this.#expression(state, 1), this.#expression(state, 1)],
              },
            },
          },
        ]
      case 3: {
        const value = this.#expression(state, 0)
        this.#set(state, 'x')
        return [{ [this.#pick(['$set', '$addFields'])]: { x: value } }]
      }
      case 4: {
        const path = this.#path(state)
        const value = this.#expression(state, 1)
        // Later stages do not read an array above the path, because mongod 6.0 counts elements without the path in some
        // plans only.
        const kept = new Map(
          [...state.paths].filter(([name]) => name === path || name.startsWith(`${path}.`) || name === '_id'),
        )
        if (path === '_id')
          return [{ $project: { y: value } }].map(
            (stage) => (this.#only(state, ['_id', 'y'], state.key === '_id' ? '_id' : null), stage),
          )
        state.paths = kept.size === 0 ? new Map([[path, []]]) : kept
        if (state.key !== '_id') state.key = null
        this.#set(state, 'y')
        return [{ $project: { [path]: 1, y: value } }]
      }
      case 5:
      case 6: {
        const ids = this.#expression(state, 1)
        const stage = {
          _id: ids,
          n: { $sum: 1 },
          m: { [this.#pick(['$max', '$min'])]: this.#expression(state, 1) },
          s: { $addToSet: this.#expression(state, 2) },
        }
        this.#only(state, ['_id', 'n', 'm', 's'], null)
        state.loose = true
        // Groups and sets have no order. Without a sort, the results of later stages would differ.
        const inOrder = { $set: { s: { $sortArray: { input: '$s', sortBy: 1 } } } }
        return [{ $group: stage }, inOrder, { $sort: { _id: 1 } }]
      }
      case 7: {
        const path = this.#path(state)
        state.key = null
        state.ordered = false
        if (path === 'j') state.ordered = false
        return [{ $unwind: { path: `$${path}`, preserveNullAndEmptyArrays: this.#chance(0.5) } }]
      }
      case 8: {
        const path = this.#path(state)
        if (state.key === null) return [{ $sort: { [path]: 1 } }]
        state.ordered = true
        const sort = path.startsWith(state.key) ? { [state.key]: -1 } : { [path]: this.#pick([1, -1]), [state.key]: 1 }
        return [
          { $sort: sort },
          ...(this.#chance(0.3) ? [{ $skip: this.#below(5) }] : []),
          ...(this.#chance(0.7) ? [{ $limit: 1 + this.#below(12) }] : []),
        ]
      }
      case 9: {
        const root = this.#expression(state, 1)
        state.paths.set('w', [1, 'x', null])
        return [{ $replaceWith: { $mergeObjects: ['$$ROOT', { w: root }] } }]
      }
      case 10: {
        const path = this.#path(state)
        if (state.paths.size < 5) return []
        for (const name of [...state.paths.keys()])
          if (name === path || name.startsWith(`${path}.`)) state.paths.delete(name)
        if (state.key === path) state.key = null
        return [{ $unset: path }]
      }
      case 11:
        return [
          {
            $redact: {
              $cond: [{ $eq: [this.#expression(state, 2), this.#expression(state, 2)] }, '$$PRUNE', '$$KEEP'],
            },
          },
        ]
      case 13: {
        const all = this.#expression(state, 2)
        const shared = { $filter: { input: '$all', as: 'one', cond: { $in: ['$$one', '$all'] } } }
        this.#only(state, ['_id', 'n'], '_id')
        return [
          { $group: { _id: null, all: { [this.#pick(['$push', '$addToSet'])]: all } } },
          { $project: { n: { $size: shared } } },
        ]
      }
      case 14: {
        const { key } = state
        const value = this.#expression(state, 2)
        this.#set(state, 'f')
        if (key === null || key === 'f') return [{ $set: { f: value } }, { $fill: { output: { f: { value: 0 } } } }]
        const window = { documents: [this.#pick(['unbounded', -1]), 'current'] }
        const output = { [this.#pick(['$push', '$first', '$max'])]: value, window }
        return [{ $setWindowFields: { sortBy: { [key]: 1 }, output: { f: output } } }]
      }
      case 12: {
        const by = `$${this.#path(state)}`
        this.#only(state, ['_id', 'count'], null)
        return [{ $sortByCount: by }, { $sort: { _id: 1 } }]
      }
      default:
        return this.#join(state)
    }
  }

  #join(state: State): Document[] {
    const from = this.#pick(Object.keys(EXPOSED))
    const other = this.#fresh(from)
    state.loose = true
    const inner = (count: number): Document[] => {
      const stages = this.#stages(other, count, true)
      state.clean &&= other.clean
      return stages
    }
    switch (this.#below(6)) {
      case 0: {
        // A known and documented limit: a null on a path through arrays can reveal elements. So no foreign path has
        // dots.
        const whole = (EXPOSED[from] ?? []).filter((path) => !path.includes('.'))
        const stage = {
          from,
          localField: this.#path(state),
          foreignField: this.#pick(whole),
          as: 'j',
          pipeline: inner(this.#below(2)),
        }
        this.#joined(state, other)
        if (!this.#chance(0.5)) return [{ $lookup: stage }]
        // The order of the documents of a $lookup depends on the index that mongod chooses.
        state.ordered = false
        const match = { $match: this.#filter(state, 1) }
        state.key = null
        return [{ $lookup: stage }, { $unwind: '$j' }, match]
      }
      case 1: {
        const outer = this.#expression(state, 1)
        const equal = { $eq: [this.#expression(other, 2), '$$v'] }
        // For a $match with outer variables on a time series, mongod 6.0 reuses the result of the first row. A second
        // $match would then make the answer without a guard wrong.
        const further = inner(1).filter((next) => from !== 'gauge' || !Object.hasOwn(next, '$match'))
        const stage = {
          from,
          let: { v: outer },
          pipeline: [{ $match: { $expr: equal } }, ...further],
          as: 'j',
        }
        state.clean &&= other.clean
        this.#joined(state, other)
        return [{ $lookup: stage }]
      }
      case 2: {
        const stage = { coll: from, pipeline: inner(this.#below(3)) }
        for (const [path, values] of other.paths) if (!state.paths.has(path)) state.paths.set(path, values)
        state.key = null
        state.ordered = false
        return [{ $unionWith: stage }]
      }
      case 3: {
        const branch = (): Document[] => {
          const copy = { ...state, paths: new Map(state.paths) }
          const stages = this.#stages(copy, 1, true)
          state.clean &&= copy.clean
          return stages.length === 0 ? [{ $match: {} }] : stages
        }
        // Some documents have no order, for example in a time series. Without a sort, the arrays of the two branches
        // would differ.
        const inOrder = state.key === null || state.ordered ? [] : [{ $sort: { [state.key]: 1 } }]
        const stage = { a: branch(), b: [...branch(), { $count: 'n' }] }
        this.#only(state, ['a', 'b'], null)
        return [...inOrder, { $facet: stage }]
      }
      case 4: {
        const found = this.#fresh('people')
        const stage = {
          from: 'people',
          startWith: this.#expression(state, 2),
          connectFromField: 'boss',
          connectToField: this.#pick(['_id', 'boss', 'land']),
          as: 'j',
          maxDepth: this.#below(3),
          depthField: 'far',
        }
        this.#joined(state, found)
        return [{ $graphLookup: stage }, { $set: { j: { $sortArray: { input: '$j', sortBy: { _id: 1 } } } } }]
      }
      default: {
        const by = `$${this.#path(state)}`
        this.#only(state, ['_id', 'count'], null)
        return [{ $bucketAuto: { groupBy: by, buckets: 3 } }]
      }
    }
  }

  #joined(state: State, other: State): void {
    this.#set(state, 'j')
    for (const [path, values] of other.paths) state.paths.set(`j.${path}`, values)
  }
}

const OPERATOR = new Set(
  '$eq $ne $gt $gte $lt $lte $in $nin $all $exists $type $size $regex $elemMatch $mod $not'.split(' '),
)
