// The databases of a team.
import { Page } from '../../frame/Page.tsx'

export function Datasources() {
  return <Page title="Datasources"></Page>
}
