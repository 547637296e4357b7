// The filters of the calls. They are part of the address, so that people can share a view.
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useMemo } from 'react'
import { useTeam } from '../../frame/current-team.ts'

/** The periods to choose from. `value` is the number of days before now, or `all`. */
export const TIMES = [
  { value: '1', label: 'Last 24 hours' },
  { value: '7', label: 'Last 7 days' },
  { value: '30', label: 'Last 30 days' },
  { value: 'all', label: 'Everything in the audit' },
] as const
export const REFUSAL_TIMES = TIMES.filter(({ value }) => value !== 'all')
/** The periods for counts by day. */
export const USAGE_TIMES = TIMES.filter(({ value }) => value === '7' || value === '30')
const DEFAULT_TIME = '7'
const DAY_MS = 86_400_000

export const ANY = 'any'

/**
 * The kinds of calls. By default, the list shows queries and changes. It hides reads, because opening a page of the
 * console causes reads.
 */
export const KINDS = [
  { value: 'asked', label: 'Queries and changes', kinds: 'query,change' },
  { value: 'query', label: 'Queries', kinds: 'query' },
  { value: 'change', label: 'Changes', kinds: 'change' },
  { value: 'read', label: 'Reads', kinds: 'read' },
  { value: 'signIn', label: 'Sign-ins', kinds: 'signIn' },
  { value: 'all', label: 'Everything', kinds: ANY },
] as const
const DEFAULT_KIND = 'asked'

export interface Filters {
  readonly kind: string
  readonly outcome: string
  readonly datasource: string
  readonly key: string
  readonly person: string
  readonly from: string
  readonly q: string
}

type FilterName = keyof Filters
const DEFAULTS: Readonly<Record<string, string>> = { kind: DEFAULT_KIND, from: DEFAULT_TIME }

export interface Chosen {
  readonly filters: Filters
  readonly isFiltered: boolean
  set(name: FilterName | 'tab' | 'id', value: string): void
}

export function useFilters(): Chosen {
  const team = useTeam()
  const navigate = useNavigate()
  const search = useSearch({ strict: false })
  const {
    kind = DEFAULT_KIND,
    outcome = ANY,
    datasource = ANY,
    key = ANY,
    person = ANY,
    from = DEFAULT_TIME,
    q = '',
  } = search
  return {
    filters: { kind, outcome, datasource, key, person, from, q },
    isFiltered: [outcome, datasource, key, person].some((value) => value !== ANY) || q !== '',
    set: (name, value) => {
      const next = {
        ...search,
        [name]: value === ANY || value === '' || value === DEFAULTS[name] ? undefined : value,
      }
      void navigate({ to: '/t/$team/activity', params: { team: team.slug }, search: next, replace: true })
    },
  }
}

/**
 * Returns the query parameters of listAudit. The start of the period changes only when a filter changes, so that the
 * answer can be cached.
 */
export function useAuditQuery({
  kind,
  outcome,
  datasource,
  key,
  person,
  from,
  q,
}: Filters): Readonly<Record<string, string>> {
  return useMemo(() => {
    const days = Number(from)
    const since = Number.isFinite(days)
      ? new Date(Math.floor(Date.now() / 60_000) * 60_000 - days * DAY_MS).toISOString()
      : ANY
    const kinds = KINDS.find(({ value }) => value === kind)?.kinds ?? ANY
    const all = {
      kind: kinds,
      outcome,
      datasourceId: datasource,
      keyId: key,
      accountId: person,
      from: since,
      q: q.trim(),
    }
    return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ANY && value !== ''))
  }, [kind, outcome, datasource, key, person, from, q])
}

export const timeWords = (from: string) => {
  const found = TIMES.find(({ value }) => value === from)
  return found === undefined || found.value === 'all' ? 'so far' : `in the ${found.label.toLowerCase()}`
}
