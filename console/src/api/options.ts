// How one can sign in to this service: GET /auth/options, public.
import { queryOptions } from '@tanstack/react-query'
import { auth } from './client.ts'
import type { AuthAnswer } from './types.ts'

export type Method = AuthAnswer<'GET /auth/options'>['methods'][number]

export const authOptions = queryOptions({
  queryKey: ['authOptions'],
  staleTime: 0,
  queryFn: ({ signal }) => auth('GET /auth/options', undefined, signal),
})
