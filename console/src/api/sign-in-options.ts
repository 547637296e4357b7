// Reads the ways to sign in to this service (GET /auth/options, which needs no sign-in).
import { queryOptions } from '@tanstack/react-query'
import { auth } from './client.ts'
import type { AuthAnswer } from './types.ts'

type Options = AuthAnswer<'GET /auth/options'>
export type Method = Options['methods'][number]

export const authOptions = queryOptions({
  queryKey: ['authOptions'],
  staleTime: 0,
  queryFn: ({ signal }) => auth('GET /auth/options', undefined, signal),
})

/** Returns the ways to sign up. Passkeys are not among them, because a passkey is added to an existing account. */
export function waysToSignUp(options: Options | undefined): readonly Method[] {
  return (options?.methods ?? []).filter((method) => method !== 'passkey')
}
