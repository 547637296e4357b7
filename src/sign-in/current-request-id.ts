// The id of the request that the sign-in library is working on, for our log lines. The library itself does not know it.
import { AsyncLocalStorage } from 'node:async_hooks'

export const requestInHand = new AsyncLocalStorage<string | undefined>()
