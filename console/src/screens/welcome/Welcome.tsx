// For a person without a team: a new team, and invitations that wait.
import { Outside } from '../../frame/Outside.tsx'

export function Welcome() {
  return <Outside title="Welcome" />
}
