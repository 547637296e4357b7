// How the connection is, and what changed in the database.
import { useDatasource } from './Datasource.tsx'

export function Health() {
  const datasource = useDatasource()
  return <p className="soft">{datasource.name}</p>
}
