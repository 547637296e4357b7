// What was asked, what was refused, and how much.
import { Page } from '../../frame/Page.tsx'

export function Activity() {
  return <Page title="Activity"></Page>
}
