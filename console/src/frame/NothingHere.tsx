// The page for an address that does not exist, and for an address that the person may not see.
import { Compass } from 'lucide-react'
import { LinkButton } from '../parts/Button.tsx'
import { Icon } from '../parts/Icon.tsx'
import { useTeamOrNone } from './current-team.ts'
import { useTitle } from './page-title.ts'

export function NothingHere() {
  const team = useTeamOrNone()
  useTitle('Nothing here', team?.name ?? null)
  return (
    <div className="page">
      <div className="empty">
        <span className="empty-picture">
          <Icon of={Compass} />
        </span>
        <h1 tabIndex={-1}>Nothing here</h1>
        <p>The address is wrong, the page was deleted, or you have no access to it.</p>
        <div className="empty-acts">
          <LinkButton to="/">Go to the start</LinkButton>
        </div>
      </div>
    </div>
  )
}
