// What a team sees first: budget, this week, and what waits for the person.
import { Page } from '../../frame/Page.tsx'

export function Home() {
  return <Page title="Home"></Page>
}
