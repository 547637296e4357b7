// The teams and datasources that a key or a grant is restricted to, by name.
import { useQueries } from '@tanstack/react-query'
import { read, useRead } from '../../api/queries.ts'
import type { Scope } from '../../api/types.ts'
import { counted } from '../../parts/format.ts'

export interface Reach {
  readonly scopes: readonly Scope[]
  readonly teamIds: readonly string[] | null
  readonly datasourceIds: readonly string[] | null
}

interface KeyReachProps {
  readonly of: Reach
  /** The words for a key or grant without restrictions. */
  readonly all?: string
}

export function KeyReach({ of: { teamIds, datasourceIds }, all = 'everything you reach' }: KeyReachProps) {
  const teams = useRead('listTeams', {}).data ?? []
  const names = useDatasourceNames(datasourceIds === null ? [] : teams.map(({ id }) => id))
  if (teamIds === null && datasourceIds === null) return <>{all}</>
  if (datasourceIds !== null) {
    const found = datasourceIds.map((id) => names.get(id)).filter((name) => name !== undefined)
    return <Listed names={found} all={datasourceIds.length} one="datasource" />
  }
  const found = teams.filter(({ id }) => teamIds?.includes(id) === true).map(({ name }) => name)
  return <Listed names={found} all={teamIds?.length ?? 0} one="team" />
}

function useDatasourceNames(teamIds: readonly string[]): ReadonlyMap<string, string> {
  const lists = useQueries({ queries: teamIds.map((teamId) => read('listDatasources', { params: { teamId } })) })
  return new Map(lists.flatMap(({ data = [] }) => data.map(({ id, name }): [string, string] => [id, name])))
}

const SHOWN = 2

function Listed({
  names,
  all,
  one,
}: {
  readonly names: readonly string[]
  readonly all: number
  readonly one: string
}) {
  if (names.length === 0) return <>{counted(all, one)}</>
  const rest = all - Math.min(names.length, SHOWN)
  return (
    <>
      <bdi>{names.slice(0, SHOWN).join(', ')}</bdi>
      {rest > 0 && ` and ${rest} more`}
    </>
  )
}
