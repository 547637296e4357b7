// Reads and changes for components. A successful change makes all reads stale. Reads that the page shows are fetched
// again at once.
import { MutationCache, QueryClient, queryOptions, useMutation, useQuery } from '@tanstack/react-query'
import { call } from './client.ts'
import { Refused, Unreachable } from './failure.ts'
import { online } from './send.ts'
import type { Answer, Input, OperationName, ReadName } from './types.ts'

const FRESH_MS = 5_000

export const queryClient: QueryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: FRESH_MS,
      networkMode: 'always',
      retry: (failures, error) =>
        failures < 2 && (error instanceof Unreachable || (error instanceof Refused && error.status >= 502)),
    },
    mutations: { networkMode: 'always' },
  },
  mutationCache: new MutationCache({
    onSuccess: (_data, _variables, _context, mutation) =>
      mutation.meta?.['changes'] === false ? undefined : queryClient.invalidateQueries(),
  }),
})

online.subscribe(() => {
  if (online.get()) void queryClient.invalidateQueries()
})

/** Returns a read in the form that the functions of TanStack Query accept. */
export function read<N extends ReadName>(name: N, input: Input<N>) {
  return queryOptions({
    queryKey: [name, input],
    queryFn: ({ signal }): Promise<Answer<N>> => call(name, input, signal),
  })
}

export function useRead<N extends ReadName>(
  name: N,
  input: Input<N>,
  options: { readonly enabled?: boolean; readonly refetchInterval?: number | false } = {},
) {
  return useQuery({ ...read(name, input), ...options })
}

/** Returns a call. With `changes: false`, the reads stay fresh afterwards, because the call changes no data. */
export function useCall<N extends OperationName>(name: N, options: { readonly changes?: false } = {}) {
  return useMutation({
    mutationFn: (input: Input<N>): Promise<Answer<N>> => call(name, input),
    meta: { changes: options.changes ?? true },
  })
}
