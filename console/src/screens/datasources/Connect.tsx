// Connects a database in four steps.
import { Page } from '../../frame/Page.tsx'

export function Connect() {
  return <Page title="Connect a datasource"></Page>
}
