// Which tables and columns of a datasource are shown.
import { useDatasource } from './Datasource.tsx'

export function Exposure() {
  const datasource = useDatasource()
  return <p className="soft">{datasource.name}</p>
}
