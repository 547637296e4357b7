// Tries queries.
import { Page } from '../../frame/Page.tsx'

export function Playground() {
  return <Page title="Playground"></Page>
}
