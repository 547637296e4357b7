// The id of the request that the sign-in library works for, because its log lines do not name the request.
import { AsyncLocalStorage } from 'node:async_hooks'

export const requestInHand = new AsyncLocalStorage<string | undefined>()
