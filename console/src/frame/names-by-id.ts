// Names by id, for lists that contain only ids.
import { useRead } from '../api/queries.ts'
import { useTeam } from './current-team.ts'

/** Returns the datasources of the team that the person reaches. */
export function useDatasourceNames(): ReadonlyMap<string, string> {
  const datasources = useRead('listDatasources', { params: { teamId: useTeam().id } }).data ?? []
  return new Map(datasources.map(({ id, name }) => [id, name]))
}
