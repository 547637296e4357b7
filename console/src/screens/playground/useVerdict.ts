// Returns the verdict on a query while it is typed. A check is sent a moment after the last key press. It does not run
// the query. The audit counts these checks, but does not store their texts.
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { call } from '../../api/client.ts'
import type { Answer } from '../../api/types.ts'
import type { Body } from './query-body.ts'

export type Verdict = Answer<'checkQuery'>
/** The role or key whose rights are checked. Undefined for the person's own rights. */
export type As = { readonly role: string } | { readonly keyId: string } | undefined

const PAUSE_MS = 350

export interface Judged {
  /** Undefined while it is unknown. */
  readonly verdict: Verdict | undefined
  readonly checking: boolean
  readonly error: unknown
}

export function useVerdict(
  at: { readonly teamId: string; readonly id: string } | null,
  body: Body | null,
  as: As,
): Judged {
  const now = body === null ? null : JSON.stringify({ ...body, as, draft: true })
  const settled = useSettled(now, PAUSE_MS)
  const { data, error, isFetching, isPlaceholderData } = useQuery({
    queryKey: ['verdict', at?.id, settled],
    enabled: at !== null && settled !== null,
    retry: false,
    staleTime: 30_000,
    gcTime: 60_000,
    placeholderData: keepPreviousData,
    queryFn: ({ signal }): Promise<Verdict> => {
      if (at === null || settled === null) throw new Error('nothing to check')
      return call('checkQuery', { params: at, body: JSON.parse(settled) }, signal)
    },
  })
  const isCurrent = now !== null && now === settled && !isPlaceholderData
  return {
    verdict: isCurrent ? data : undefined,
    checking: now !== null && (now !== settled || isFetching),
    error: isCurrent ? error : null,
  }
}

/** Returns the value after it has not changed for a while. */
function useSettled<T>(value: T, ms: number): T {
  const [settled, settle] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => settle(value), ms)
    return () => clearTimeout(timer)
  }, [value, ms])
  return settled
}
