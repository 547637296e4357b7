// Provides the id of the request that the sign-in library is processing. The library itself does not log this id.
import { AsyncLocalStorage } from 'node:async_hooks'

export const requestInHand = new AsyncLocalStorage<string | undefined>()
