// The people of a team, and invitations.
import { Page } from '../../frame/Page.tsx'

export function Members() {
  return <Page title="Members"></Page>
}
