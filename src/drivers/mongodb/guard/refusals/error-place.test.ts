import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mongoCatalog } from '../../../../../test/support/mongo-catalog.ts'
import type { Denied, Malformed } from '../../../driver.ts'
import { confine } from '../confine.ts'
import { readBody } from '../body/read-body.ts'

const PATHS = ['_id', 'name', 'home.city', 'cards.brand', 'tags']
const catalog = mongoCatalog({ people: PATHS, orders: PATHS })
const limits = { rowCap: 100, maxResponseBytes: 1 << 20, timeoutMs: 1000, maxCost: 1e6 }

interface Told {
  readonly verdict: Denied | Malformed
  /** The text from the position to its end. */
  readonly from: string
}

function told(body: object): Told {
  const read = readBody({ collection: 'people', ...body })
  const verdict = confine(read, catalog, limits)
  assert.ok(verdict.kind !== 'confined', JSON.stringify(body))
  return { verdict, from: verdict.position === undefined ? '' : read.text.slice(verdict.position) }
}

const piped = (...pipeline: object[]): object => ({ pipeline })

test('a refusal names its place in the body, as a path and as a position in the text', () => {
  const places: readonly (readonly [object, string, string])[] = [
    [
      piped({ $limit: 1 }, { $limit: 2 }, { $project: { 'é"x': { $add: [1, '$ssn'] } } }),
      'pipeline.2.$project.é"x.$add.1',
      '"$ssn"]',
    ],
    [piped({ $project: { a: { $lowercase: '$name' } } }), 'pipeline.0.$project.a.$lowercase', '"$lowercase":'],
    [piped({ $group: { _id: '$name', n: { $sum: '$pay' } } }), 'pipeline.0.$group.n', '"n":{"$sum"'],
    [piped({ $sort: { name: 1, ssn: 1 } }), 'pipeline.0.$sort.ssn', '"ssn":1'],
    [piped({ $project: { name: 1, ssn: 1 } }), 'pipeline.0.$project.ssn', '"ssn":1'],
    [piped({ $orderBy: { name: 1 } }), 'pipeline.0.$orderBy', '"$orderBy"'],
    [piped({ $facet: { one: [{ $match: { ssn: 1 } }] } }), 'pipeline.0.$facet.one.0.$match.ssn', '"ssn":1'],
    [piped({ $lookup: { from: 'vault', pipeline: [], as: 'x' } }), 'pipeline.0.$lookup.from', '"from":"vault"'],
    [
      piped({ $lookup: { from: 'orders', localField: 'ssn', foreignField: '_id', as: 'x' } }),
      'pipeline.0.$lookup.localField',
      '"localField":"ssn"',
    ],
    [{ filter: { $or: [{ name: 1 }, { ssn: { $gt: 1 } }] } }, 'filter.$or.1.ssn', '"ssn":{"$gt"'],
    [{ filter: { name: { $like: 'x' } } }, 'filter.name.$like', '"$like"'],
    [{ filter: { _id: { $oid: 'x' } } }, 'filter._id.$oid', '"$oid"'],
    [{ collection: 'vault' }, 'collection', '"collection":"vault"'],
    [
      piped({ $project: { x: { $map: { input: '$tags', in: '$$that' } } } }),
      'pipeline.0.$project.x.$map.in',
      '"in":"$$that"',
    ],
  ]
  for (const [body, path, text] of places) {
    const { verdict, from } = told(body)
    const prose = verdict.kind === 'denied' ? verdict.hint : verdict.why
    assert.ok(prose.includes(`at ${path}`), `${path}: ${prose}`)
    assert.ok(from.startsWith(text), `${path}: ${from.slice(0, 60)}`)
  }
})

test('a refusal suggests similar exposed or allowed names, or the MongoDB name', () => {
  const meant: readonly (readonly [object, string])[] = [
    [{ filter: { nmae: 1 } }, 'name'],
    [{ filter: { 'home.ctiy': 1 } }, 'home.city'],
    [{ filter: { 'card.brand': 1 } }, 'cards.brand'],
    [{ collection: 'order' }, 'orders'],
    [piped({ $project: { a: { $lowercase: '$name' } } }), '$toLower'],
    [piped({ $project: { a: { $ifnull: ['$name', 1] } } }), '$ifNull'],
    [piped({ $project: { a: { $len: '$name' } } }), '$strLenCP or $size'],
    [piped({ $project: { a: { $contains: ['$tags', 1] } } }), '$in or $regexMatch'],
    [piped({ $project: { a: { $concatarray: ['$tags'] } } }), '$concatArrays'],
    [piped({ $group: { _id: 1, a: { $average: '$name' } } }), '$avg'],
    [piped({ $select: { name: 1 } }), '$project'],
    [piped({ $filter: { name: 1 } }), '$match'],
    [piped({ $join: { from: 'orders' } }), '$lookup'],
    [piped({ $orderBy: { name: 1 } }), '$sort'],
    [piped({ $top: 5 }), '$limit'],
    [piped({ $lokup: { from: 'orders' } }), '$lookup'],
    [{ filter: { name: { $like: 'x' } } }, '$regex'],
    [{ filter: { $where: 'this.a' } }, '$expr'],
    [piped({ $project: { x: { $map: { input: '$tags', as: 'tag', in: '$$tga' } } } }), '$$tag'],
  ]
  for (const [body, name] of meant) {
    const { verdict } = told(body)
    assert.ok(verdict.kind === 'denied', JSON.stringify(body))
    assert.ok(verdict.hint.startsWith(`Did you mean ${name}`), `${JSON.stringify(body)}: ${verdict.hint}`)
  }
})

test('a hint lists only exposed paths, and the most similar path comes first', () => {
  const { verdict } = told({ filter: { brand: 1 } })
  assert.ok(verdict.kind === 'denied')
  assert.match(verdict.hint, /^Did you mean cards\.brand\? Fields here: cards\.brand, _id, name, home\.city, tags\./)
})
