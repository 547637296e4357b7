// Password, second factor, passkeys and sessions of the person.
import { Page } from '../../frame/Page.tsx'

export function Security() {
  return <Page title="Security"></Page>
}
