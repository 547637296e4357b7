// Creates an account.
import { Outside } from '../../frame/Outside.tsx'

export function SignUp() {
  return <Outside title="Create account" />
}
