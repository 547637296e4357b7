// Verifies an address by a mailed link.
import { Outside } from '../../frame/Outside.tsx'

export function Verify() {
  return <Outside title="Verify your address" />
}
