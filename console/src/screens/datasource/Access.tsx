// Who reaches a datasource.
import { useDatasource } from './Datasource.tsx'

export function Access() {
  const datasource = useDatasource()
  return <p className="soft">{datasource.name}</p>
}
