// Loaded before the test files of each process. Lets node:test follow which test runs by an AsyncLocalStorage instead of
// an async hook, which is called for every promise (docs/decisions/0059-follow-tests.md). Changes nothing else.
import asyncHooks, { AsyncLocalStorage, type HookCallbacks } from 'node:async_hooks'
import { isMainThread } from 'node:worker_threads'

// Worker threads inherit the option that loads this file, but run no tests.
if (isMainThread) await loadNodeTest()

/** Loads node:test, and gives it other versions of the three functions of node:async_hooks that it uses. */
async function loadNodeTest(): Promise<void> {
  const { AsyncResource, createHook, executionAsyncId } = asyncHooks
  const current = new AsyncLocalStorage<number>()
  let hook: HookCallbacks | undefined

  /** In node:test, each test, suite and hook of a test is such a resource. */
  class Resource extends AsyncResource {
    constructor(type: string) {
      super(type)
      hook?.init?.(this.asyncId(), type, executionAsyncId(), this)
    }

    override runInAsyncScope<This, Result>(
      run: (this: This, ...args: unknown[]) => Result,
      self: This,
      ...args: unknown[]
    ): Result {
      return super.runInAsyncScope(() => current.run(this.asyncId(), () => run.apply(self, args)))
    }
  }
  Object.assign(asyncHooks, {
    AsyncResource: Resource,
    createHook: (callbacks: HookCallbacks) => ({
      enable: () => (hook = callbacks),
      disable: () => (hook = undefined),
    }),
    executionAsyncId: () => current.getStore() ?? executionAsyncId(),
  })
  await import('node:test')
  Object.assign(asyncHooks, { AsyncResource, createHook, executionAsyncId })
}
