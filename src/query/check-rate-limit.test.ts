import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sessionCall } from '../../test/support/connected.ts'
import { newId, type AccountId } from '../ids.ts'
import { openDrafts } from './check-rate-limit.ts'

test('each session may check ten drafts of queries a second, whatever other sessions check', () => {
  let now = 0
  const drafts = openDrafts(() => now)
  const [one, other] = [
    sessionCall(newId<AccountId>(), 'check').caller,
    sessionCall(newId<AccountId>(), 'check').caller,
  ]
  const spend = (times: number, caller = one) => {
    for (let n = 0; n < times; n++) drafts.spend(caller)
  }
  spend(10)
  assert.throws(() => spend(1), { code: 'RATE_LIMITED' })
  spend(10, other)
  now = 999
  assert.throws(() => spend(1), { code: 'RATE_LIMITED' })
  now = 1_000
  spend(10)
  assert.throws(() => spend(1), { code: 'RATE_LIMITED' })
})
