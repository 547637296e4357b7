// Texts about tables and columns.
import { useDatasource } from './Datasource.tsx'

export function Documentation() {
  const datasource = useDatasource()
  return <p className="soft">{datasource.name}</p>
}
