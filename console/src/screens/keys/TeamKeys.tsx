// The API keys of members that reach this team.
import { Page } from '../../frame/Page.tsx'

export function TeamKeys() {
  return <Page title="API keys of this team"></Page>
}
