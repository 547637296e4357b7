// The id of the request that the sign-in library is processing. The log lines of the library do not contain it.
import { AsyncLocalStorage } from 'node:async_hooks'

export const requestInHand = new AsyncLocalStorage<string | undefined>()
