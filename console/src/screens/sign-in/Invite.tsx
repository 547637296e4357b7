// Accepts an invitation.
import { Outside } from '../../frame/Outside.tsx'

export function Invite() {
  return <Outside title="Join" />
}
