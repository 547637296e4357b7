// The person's name, theme and keys of the keyboard, and the deletion of the account.
import { Page } from '../../frame/Page.tsx'

export function Profile() {
  return <Page title="Profile"></Page>
}
