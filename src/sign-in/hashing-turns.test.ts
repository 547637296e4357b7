import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { openHashing } from './sign-in-limits.ts'

const SIGN_IN = 'POST /auth/sign-in/email'

/** Sends requests from these addresses, which wait for a turn. Returns their names in the order of their turns. */
async function served(waiting: readonly { readonly name: string; readonly from: string; readonly known?: true }[]) {
  const hashing = openHashing()
  const request = (from: string) => new Request('http://v.example/', { headers: { 'x-vitrine-client': from } })
  const first = await Promise.all(['1', '2'].map((n) => hashing(SIGN_IN, request(`203.0.${n}.1`), `first ${n}`)))
  const order: string[] = []
  const all: Promise<void>[] = []
  for (const { name, from, known } of waiting) {
    const serve = async () => {
      using _turn = await hashing(SIGN_IN, request(from), known === true ? name : null)
      order.push(name)
    }
    all.push(serve())
    await setImmediate()
  }
  for (const turn of first) turn?.[Symbol.dispose]()
  await Promise.all(all)
  return order
}

test('a person with many own accounts in one block of networks does not delay a known browser elsewhere', async () => {
  const eve = Array.from({ length: 100 }, (_, n) => ({ name: `eve ${n}`, from: `192.0.2.${n}`, known: true as const }))
  const order = await served([...eve, { name: 'vic', from: '198.51.100.1', known: true }])
  assert.ok(order.indexOf('vic') < 4, order.slice(0, 10).join(', '))
})

test('a person with many own accounts in one network does not delay a known browser of the same block', async () => {
  const eve = Array.from({ length: 100 }, (_, n) => ({ name: `eve ${n}`, from: '192.0.2.1', known: true as const }))
  const order = await served([...eve, { name: 'vic', from: '192.0.2.2', known: true }])
  assert.ok(order.indexOf('vic') < 4, order.slice(0, 10).join(', '))
})

test('a stranger with many networks of one block does not delay an unknown browser elsewhere', async () => {
  const eve = Array.from({ length: 100 }, (_, n) => ({ name: `eve ${n}`, from: `2001:db8:1:${n}::1` }))
  const order = await served([...eve, { name: 'vic', from: '2001:db8:2::1' }])
  assert.ok(order.indexOf('vic') < 4, order.slice(0, 10).join(', '))
})
