// Sets a new password by a mailed link.
import { Outside } from '../../frame/Outside.tsx'

export function Reset() {
  return <Outside title="Reset password" />
}
