// The API keys of the person, and the agents that the person connected.
import { Page } from '../../frame/Page.tsx'

export function MyKeys() {
  return <Page title="API keys"></Page>
}
