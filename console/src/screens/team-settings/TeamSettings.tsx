// A team's name, limits and audit, and its deletion.
import { Page } from '../../frame/Page.tsx'

export function TeamSettings() {
  return <Page title="Team"></Page>
}
