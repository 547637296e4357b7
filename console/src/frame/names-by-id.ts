import { useRead } from '../api/queries.ts'
import { useTeam } from './current-team.ts'

/** Returns the names, by id, of the team's datasources that the person may access. */
export function useDatasourceNames(): ReadonlyMap<string, string> {
  const datasources = useRead('listDatasources', { params: { teamId: useTeam().id } }).data ?? []
  return new Map(datasources.map(({ id, name }) => [id, name]))
}
