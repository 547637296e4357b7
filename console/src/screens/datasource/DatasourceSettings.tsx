// The connection of a datasource, and its end.
import { useDatasource } from './Datasource.tsx'

export function DatasourceSettings() {
  const datasource = useDatasource()
  return <p className="soft">{datasource.name}</p>
}
