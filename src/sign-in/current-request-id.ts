// The id of the request that the sign-in library is working on, for its log lines.
import { AsyncLocalStorage } from 'node:async_hooks'

export const requestInHand = new AsyncLocalStorage<string | undefined>()
