// The real guard checks these MongoDB queries. test/door/suggestion.test.ts tests PostgreSQL.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { mongoCatalog } from '../../test/support/mongo-catalog.ts'
import { createMongoDriver } from '../drivers/mongodb/driver.ts'
import type { Catalog, Driver, Limits } from '../drivers/driver.ts'
import { suggestionFor } from './suggest-repair.ts'

const LIMITS: Limits = { rowCap: 100, maxResponseBytes: 1 << 20, timeoutMs: 1_000, maxCost: 1e6 }
const NEVER = new AbortController().signal

async function suggested(driver: Driver, exposed: Catalog, body: object, signal = NEVER) {
  const read = driver.read(body)
  const denied = await driver.confine(read, exposed, LIMITS, NEVER)
  assert.equal(denied.kind, 'denied', JSON.stringify(body))
  assert.ok(denied.kind === 'denied')
  return await suggestionFor({ driver, body, text: read.text, denied, exposed, limits: LIMITS }, signal)
}

describe('a refused document', async () => {
  const driver = await createMongoDriver()
  const exposed = mongoCatalog({
    people: ['_id', 'name', 'home.city', 'cards.brand', 'cards.exp', 'tags', 'boss'],
    orders: ['_id', 'person', 'total', 'state'],
  })
  const people = (...pipeline: object[]) => ({ collection: 'people', pipeline })
  const filtered = (filter: object) => ({ collection: 'people', filter })

  const cases: readonly (readonly [object, object | undefined])[] = [
    [{ collection: 'poeple' }, { collection: 'people' }],
    [
      { collection: 'order', filter: { state: 'new' } },
      { collection: 'orders', filter: { state: 'new' } },
    ],
    [filtered({ nmae: 'Ada' }), filtered({ name: 'Ada' })],
    [filtered({ nmae: 'nmae' }), filtered({ name: 'nmae' })],
    [filtered({ tags: 1, 'home.ctiy': 'Ulm' }), filtered({ tags: 1, 'home.city': 'Ulm' })],
    [filtered({ $or: [{ nmae: 1 }, { tags: 1 }] }), filtered({ $or: [{ name: 1 }, { tags: 1 }] })],
    [filtered({ cards: { $elemMatch: { brnad: 'visa' } } }), filtered({ cards: { $elemMatch: { brand: 'visa' } } })],
    [filtered({ $expr: { $eq: ['$$ROOT.nmae', 'x'] } }), filtered({ $expr: { $eq: ['$$ROOT.name', 'x'] } })],
    [filtered({ name: { $equals: 'x' } }), filtered({ name: { $eq: 'x' } })],
    [people({ $project: { a: { $lowercase: '$name' } } }), people({ $project: { a: { $toLower: '$name' } } })],
    [
      people({ $group: { _id: '$name', n: { $average: '$boss' } } }),
      people({ $group: { _id: '$name', n: { $avg: '$boss' } } }),
    ],
    [people({ $orderBy: { name: 1 } }), people({ $sort: { name: 1 } })],
    [
      people({ $project: { t: { $map: { input: '$tags', as: 'tag', in: '$$tga' } } } }),
      people({ $project: { t: { $map: { input: '$tags', as: 'tag', in: '$$tag' } } } }),
    ],
    [
      people({ $lookup: { from: 'ordres', localField: '_id', foreignField: 'person', as: 'o' } }),
      people({ $lookup: { from: 'orders', localField: '_id', foreignField: 'person', as: 'o' } }),
    ],
    // The intended field comes from an earlier stage.
    [
      people({ $group: { _id: '$name', count: { $sum: 1 } } }, { $sort: { conut: -1 } }),
      people({ $group: { _id: '$name', count: { $sum: 1 } } }, { $sort: { count: -1 } }),
    ],
    // This query has two mistakes.
    [
      { collection: 'poeple', pipeline: [{ $match: { nmae: 1 } }] },
      { collection: 'people', pipeline: [{ $match: { name: 1 } }] },
    ],
    // A hidden output field, a hidden sort field and a forbidden last stage are removed.
    [people({ $project: { name: 1, ssn: 1 } }), people({ $project: { name: 1 } })],
    [people({ $project: { name: 1, s: { $concat: ['x', '$ssn'] } } }), people({ $project: { name: 1 } })],
    [people({ $sort: { name: 1, ssn: -1 } }), people({ $sort: { name: 1 } })],
    [
      people({ $group: { _id: '$name', n: { $sum: 1 }, s: { $max: '$ssn' } } }),
      people({ $group: { _id: '$name', n: { $sum: 1 } } }),
    ],
    [people({ $match: { name: 'Ada' } }, { $out: 'copy' }), people({ $match: { name: 'Ada' } })],
    // A condition, a group and the only stage or output are never removed, and no allowed name is similar.
    [filtered({ name: 'Ada', ssn: 'x' }), undefined],
    [people({ $match: { ssn: 'x' } }), undefined],
    [people({ $project: { ssn: 1 } }), undefined],
    [people({ $group: { _id: '$ssn', n: { $sum: 1 } } }), undefined],
    [people({ $out: 'copy' }), undefined],
    [filtered({ $where: 'sleep(1)' }), undefined],
    // The wrong operator could mean several operators, and no collection has a similar name.
    [filtered({ name: { $like: 'x%' } }), undefined],
    [{ collection: 'vault' }, undefined],
  ]
  for (const [body, repaired] of cases) {
    test(`the suggestion for ${JSON.stringify(body)}`, async () => {
      const found = await suggested(driver, exposed, { ...body, limit: 7 })
      assert.deepEqual(found, repaired)
      if (found === undefined) return
      const verdict = await driver.confine(driver.read(found), exposed, LIMITS, NEVER)
      assert.equal(verdict.kind, 'confined')
    })
  }

  test('a refused query gets no suggestion if it is long or the caller is gone', async () => {
    const long = people({ $match: { name: 'x'.repeat(5_000) } }, { $orderBy: { name: 1 } })
    assert.equal(await suggested(driver, exposed, long), undefined)
    assert.equal(await suggested(driver, exposed, people({ $orderBy: { name: 1 } }), AbortSignal.abort()), undefined)
  })
})
