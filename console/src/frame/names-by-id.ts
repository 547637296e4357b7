// Names by id, for lists that hold ids only.
import { useRead } from '../api/queries.ts'
import { useTeam } from './current-team.ts'

/** The team's datasources that one reaches. */
export function useDatasourceNames(): ReadonlyMap<string, string> {
  const datasources = useRead('listDatasources', { params: { teamId: useTeam().id } }).data ?? []
  return new Map(datasources.map(({ id, name }) => [id, name]))
}
