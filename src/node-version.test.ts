import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nodeProblem } from './node-version.ts'
import { Disposables } from './node-22-polyfills.ts'

for (const [version, isNew] of [
  ['v20.20.2', false],
  ['v22.4.0', false],
  ['v22.15.9', false],
  ['v22.16.0', true],
  ['v23.0.0', true],
  ['v24.21.0', true],
  ['v100.0.0', true],
] as const) {
  test(`Node ${version} is ${isNew ? 'new enough' : 'refused with the reason'}`, () => {
    const reason = `Vitrine needs Node 22.16 or newer. This is Node ${version}.`
    assert.equal(nodeProblem(version, '22.16'), isNew ? null : reason)
  })
}

for (const Stack of [Disposables, AsyncDisposableStack]) {
  test(`${Stack === Disposables ? 'our stack for Node 22' : 'the stack of Node 24'} disposes in reverse order, once, and after a move`, async () => {
    const seen: string[] = []
    const resource = (name: string) => ({
      [Symbol.asyncDispose]: async () => void seen.push(name),
    })
    const stack = new Stack()
    assert.equal(stack.use(null), null)
    stack.use(resource('first'))
    stack.use({ [Symbol.dispose]: () => void seen.push('second') })
    stack.adopt('third', (name) => void seen.push(name))
    stack.defer(async () => void seen.push('fourth'))
    const held = stack.move()
    await stack.disposeAsync()
    assert.deepEqual([seen, stack.disposed, held.disposed], [[], true, false])
    await held[Symbol.asyncDispose]()
    await held.disposeAsync()
    assert.deepEqual(seen, ['fourth', 'third', 'second', 'first'])
  })

  test(`${Stack === Disposables ? 'our stack' : 'the stack of Node 24'} disposes of the other resources if one fails, and passes the error on`, async () => {
    const seen: string[] = []
    const stack = new Stack()
    stack.defer(() => void seen.push('last'))
    stack.defer(() => {
      throw new Error('broken')
    })
    await assert.rejects(stack.disposeAsync(), /broken/)
    assert.deepEqual(seen, ['last'])
    assert.throws(() => stack.defer(() => undefined), ReferenceError)
  })
}
