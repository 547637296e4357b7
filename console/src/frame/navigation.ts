// The items of the navigation, for the frame, the palette and the keyboard shortcuts.
import { Activity, Database, House, KeyRound, Settings, SquareTerminal, Users, type LucideIcon } from 'lucide-react'
import type { Place } from './keyboard-shortcuts.ts'

export const PLACES = [
  { label: 'Home', to: '/t/$team', key: 'h', icon: House },
  { label: 'Datasources', to: '/t/$team/datasources', key: 'd', icon: Database },
  { label: 'Playground', to: '/t/$team/playground', key: 'p', icon: SquareTerminal },
  { label: 'Activity', to: '/t/$team/activity', key: 'a', icon: Activity },
  { label: 'Members', to: '/t/$team/members', key: 'm', icon: Users },
  { label: 'Settings', to: '/t/$team/settings', key: 's', icon: Settings },
  { label: 'API keys', to: '/settings/keys', key: 'k', icon: KeyRound },
] as const satisfies readonly { label: string; to: string; key: Place; icon: LucideIcon }[]
