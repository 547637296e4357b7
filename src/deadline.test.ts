import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, test } from 'node:test'
import { deadlineOf, type Deadline } from './deadline.ts'
import { AppError } from './errors.ts'

const LONG = 3_600_000
const never = new AbortController().signal

/** Records the reasons that the listeners of `stop` and `signal` get. */
function watch(deadline: Deadline): { readonly heard: unknown[] } {
  const heard: unknown[] = []
  deadline.stop.addEventListener('abort', () => heard.push(deadline.stop.reason))
  const { signal } = deadline
  signal.addEventListener('abort', () => heard.push(signal.reason))
  return { heard }
}

describe('a deadline', () => {
  test('a caller who hangs up ends all deadlines of the caller, with the same reason', () => {
    const caller = new AbortController()
    using first = deadlineOf(caller.signal, LONG)
    using second = deadlineOf(caller.signal, LONG)
    using over = deadlineOf(caller.signal, LONG)
    using other = deadlineOf(never, LONG)
    over[Symbol.dispose]()
    const heard = [first, second, over, other].map((each) => watch(each).heard)
    const why = new Error('gone')
    caller.abort(why)
    assert.deepEqual(heard, [[why, why], [why, why], [], []])
    assert.deepEqual(
      [first.timedOut, first.ended, first.signal.reason, other.signal.aborted],
      [false, null, why, false],
    )
    assert.throws(() => first.stop.throwIfAborted(), why)
    other.stop.throwIfAborted()
  })

  test('a deadline has ended from the start if the caller’s signal was already aborted', () => {
    const why = new Error('gone')
    using deadline = deadlineOf(AbortSignal.abort(why), LONG)
    assert.deepEqual([deadline.stop.aborted, deadline.signal.aborted, deadline.signal.reason], [true, true, why])
  })

  test('deadlines end with a TimeoutError, in the order of their timeouts, but not after they were disposed', async () => {
    using late = deadlineOf(never, LONG)
    using first = deadlineOf(never, 20)
    using between = deadlineOf(never, 20)
    using second = deadlineOf(never, 20)
    using third = deadlineOf(never, 40)
    const order: string[] = []
    for (const [name, each] of Object.entries({ late, first, between, second, third }))
      each.stop.addEventListener('abort', () => order.push(name))
    between[Symbol.dispose]()
    await once(third.signal, 'abort')
    assert.deepEqual(order, ['first', 'second', 'third'])
    assert.deepEqual([first.timedOut, between.timedOut, late.timedOut], [true, false, false])
    assert.equal(first.signal.reason instanceof DOMException && first.signal.reason.name, 'TimeoutError')
    assert.equal(between.signal.aborted, false)
    // The queue was empty for some time, and still works.
    using again = deadlineOf(never, 20)
    await once(again.signal, 'abort')
    assert.equal(again.timedOut, true)
  })

  test('two deadlines with the same timeout end in the order of their start', async () => {
    using first = deadlineOf(never, 30)
    using tick = deadlineOf(never, 10)
    await once(tick.signal, 'abort')
    using second = deadlineOf(never, 30)
    const before: boolean[] = []
    first.stop.addEventListener('abort', () => before.push(second.timedOut))
    await once(second.signal, 'abort')
    assert.deepEqual([before, second.timedOut], [[false], true])
  })

  test('a deadline expires in time even if a listener of an earlier one begins another call', async () => {
    using first = deadlineOf(never, 1_000)
    using tick = deadlineOf(never, 50)
    await once(tick.signal, 'abort')
    using second = deadlineOf(never, 1_000)
    const begun: Deadline[] = []
    first.stop.addEventListener('abort', () => begun.push(deadlineOf(never, 1_000)))
    // The call that the listener begins must end last.
    await once(second.signal, 'abort')
    const [last] = begun
    assert.deepEqual([second.timedOut, last?.timedOut], [true, false])
    last?.[Symbol.dispose]()
  })

  test('only the first refusal ends a deadline', () => {
    const caller = new AbortController()
    using deadline = deadlineOf(caller.signal, LONG)
    const { heard } = watch(deadline)
    const refusal = new AppError('NOT_FOUND', 'Not found.')
    deadline.end(refusal)
    deadline.end(new AppError('OVERLOADED', 'Too late.'))
    caller.abort(new Error('gone'))
    assert.deepEqual(heard, [refusal, refusal])
    assert.deepEqual([deadline.ended, deadline.timedOut, deadline.signal.reason], [refusal, false, refusal])
  })

  test('a removed listener of a deadline is not called', () => {
    const caller = new AbortController()
    using deadline = deadlineOf(caller.signal, LONG)
    const heard: number[] = []
    const listeners = [1, 2, 3].map((n) => () => void heard.push(n))
    for (const listener of listeners) deadline.stop.addEventListener('abort', listener)
    for (const at of [0, 2]) deadline.stop.removeEventListener('abort', listeners[at] ?? assert.fail())
    caller.abort()
    assert.deepEqual(heard, [2])
  })
})
