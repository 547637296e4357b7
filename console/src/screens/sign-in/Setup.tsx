// The first account of a service.
import { Outside } from '../../frame/Outside.tsx'

export function Setup() {
  return <Outside title="Set up Vitrine" />
}
