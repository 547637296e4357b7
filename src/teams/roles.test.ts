import assert from 'node:assert/strict'
import { test } from 'node:test'
import { canGrant, canReach, canTouch, roleAtLeast } from './roles.ts'
import { slugFrom } from './slug.ts'

const ROLES = ['OWNER', 'ADMIN', 'MEMBER'] as const

test('OWNER ranks above ADMIN, and ADMIN above MEMBER', () => {
  const table = ROLES.map((role) => ROLES.map((min) => roleAtLeast(role, min)))
  assert.deepEqual(table, [
    [true, true, true],
    [false, true, true],
    [false, false, true],
  ])
})

test('the role, and not the access list, decides who reaches a ROLE_BASED datasource', () => {
  for (const role of ROLES) {
    for (const minRole of ROLES) {
      for (const listed of [true, false]) {
        const reached = canReach({ role, status: 'ACTIVE' }, { accessMode: 'ROLE_BASED', minRole }, listed)
        assert.equal(reached, roleAtLeast(role, minRole), `${role} ${minRole} ${listed}`)
      }
    }
  }
})

test('the access list decides who reaches an EXPLICIT datasource, but an OWNER always reaches it', () => {
  for (const minRole of ROLES) {
    const reach = (role: (typeof ROLES)[number], listed: boolean) =>
      canReach({ role, status: 'ACTIVE' }, { accessMode: 'EXPLICIT', minRole }, listed)
    assert.deepEqual(
      ROLES.map((role) => [reach(role, true), reach(role, false)]),
      [
        [true, true],
        [true, false],
        [true, false],
      ],
    )
  }
})

test('an INVITED member reaches no datasource', () => {
  for (const role of ROLES) {
    for (const accessMode of ['ROLE_BASED', 'EXPLICIT'] as const) {
      assert.equal(canReach({ role, status: 'INVITED' }, { accessMode, minRole: 'MEMBER' }, true), false)
    }
  }
})

test('nobody can give a role above their own, and only an OWNER can change OWNERs', () => {
  const as = (role: (typeof ROLES)[number]) => ({ role, status: 'ACTIVE' }) as const
  assert.deepEqual(
    ROLES.map((by) => ROLES.map((role) => canGrant(as(by), role))),
    [
      [true, true, true],
      [false, true, true],
      [false, false, true],
    ],
  )
  assert.deepEqual([canTouch(as('OWNER'), as('OWNER')), canTouch(as('ADMIN'), as('OWNER'))], [true, false])
  assert.equal(canTouch(as('ADMIN'), as('ADMIN')), true)
})

test('a slug can be made from any name', () => {
  const table = { 'Café  Zürich!': 'cafe-zurich', Bars: 'bars', 数据: 'team', '--a--b--': 'a-b', '': 'team' }
  for (const [name, slug] of Object.entries(table)) assert.equal(slugFrom(name), slug)
  assert.match(slugFrom('a '.repeat(100)), /^[a-z0-9]+(-[a-z0-9]+)*$/)
})
