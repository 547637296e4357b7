// The second step of a sign-in.
import { Outside } from '../../frame/Outside.tsx'

export function TwoFactor() {
  return <Outside title="Enter your code" />
}
