// The command palette: a person types a few letters, and chooses a page, a datasource, a team or an action.
import { useNavigate } from '@tanstack/react-router'
import {
  Database,
  KeyRound,
  LogOut,
  Moon,
  Plus,
  Search,
  Sun,
  UserPlus,
  UserRound,
  Users,
  type LucideIcon,
} from 'lucide-react'
import { useEffect, useId, useState, type KeyboardEvent } from 'react'
import { useRead } from '../api/queries.ts'
import { signOut } from '../api/session.ts'
import type { Team } from '../api/types.ts'
import { Dialog as Base } from '@base-ui/react/dialog'
import { Icon } from '../parts/Icon.tsx'
import { PLACES } from './navigation.ts'
import { hasRole } from './current-team.ts'
import { chooseTheme } from './theme.ts'

interface Command {
  readonly label: string
  readonly kind: string
  readonly icon: LucideIcon
  /** Words that find the command, in addition to its label and kind. */
  readonly also?: string
  readonly run: () => void
}

interface PaletteProps {
  readonly open: boolean
  readonly onClose: () => void
  readonly team: Team | null
  readonly teams: readonly Team[]
}

export function Palette({ open, onClose, ...rest }: PaletteProps) {
  return (
    <Base.Root open={open} onOpenChange={(next) => !next && onClose()}>
      <Base.Portal>
        <Base.Backdrop className="backdrop" />
        <Base.Viewport className="dialog-place">
          <Base.Popup className="dialog palette" aria-label="Command palette">
            <Finder {...rest} onClose={onClose} />
          </Base.Popup>
        </Base.Viewport>
      </Base.Portal>
    </Base.Root>
  )
}

function Finder({ onClose, team, teams }: Omit<PaletteProps, 'open'>) {
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const id = useId()
  const found = matching(useCommands(team, teams), text)
  const current = found[Math.min(at, found.length - 1)]
  const optionId = (command: Command | undefined) =>
    command === undefined ? undefined : `${id}-${found.indexOf(command)}`
  const currentId = optionId(current)
  useEffect(() => {
    if (currentId !== undefined) document.getElementById(currentId)?.scrollIntoView({ block: 'nearest' })
  }, [currentId])
  const choose = (command: Command | undefined) => {
    if (command === undefined) return
    onClose()
    command.run()
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const steps: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 }
    const step = steps[event.key]
    if (step !== undefined) setAt((Math.min(at, found.length - 1) + step + found.length) % Math.max(1, found.length))
    else if (event.key === 'Enter') choose(current)
    else return
    event.preventDefault()
  }
  return (
    <>
      <div className="palette-input">
        <Icon of={Search} />
        <input
          role="combobox"
          aria-label="Search or jump to"
          aria-expanded
          aria-controls={`${id}-list`}
          aria-autocomplete="list"
          aria-activedescendant={currentId}
          placeholder="Search or jump to…"
          value={text}
          onChange={(event) => {
            setText(event.target.value)
            setAt(0)
          }}
          onKeyDown={onKeyDown}
          autoComplete="off"
          spellCheck={false}
        />
        <kbd>Esc</kbd>
      </div>
      <ul className="palette-list" role="listbox" id={`${id}-list`} aria-label="Places and actions">
        {found.map((command) => (
          <li
            key={`${command.kind} ${command.label}`}
            id={optionId(command)}
            role="option"
            aria-selected={command === current}
            className="item"
            onPointerMove={() => setAt(found.indexOf(command))}
            onClick={() => choose(command)}
          >
            <Icon of={command.icon} />
            <bdi className="cut">{command.label}</bdi>
            <span className="item-end" aria-hidden>
              {command.kind}
            </span>
          </li>
        ))}
      </ul>
      {found.length === 0 && <p className="popup-label">Nothing has this name.</p>}
    </>
  )
}

function useCommands(team: Team | null, teams: readonly Team[]): readonly Command[] {
  const navigate = useNavigate()
  const teamId = team?.id ?? ''
  const datasources = useRead('listDatasources', { params: { teamId } }, { enabled: team !== null })
  const slug = team?.slug ?? ''
  const go = (to: string) => () => void navigate({ to, params: { team: slug } })
  const act = (label: string, icon: LucideIcon, run: () => void, also = ''): Command => ({
    label,
    kind: 'Action',
    icon,
    run,
    also,
  })
  const isAdmin = team !== null && hasRole(team, 'ADMIN')
  return [
    ...PLACES.filter(({ to }) => team !== null || !to.includes('$team')).map(({ label, icon, to }): Command => ({
      label,
      kind: 'Page',
      icon,
      run: go(to),
    })),
    ...(datasources.data ?? []).map(({ id, name }): Command => ({
      label: name,
      kind: 'Datasource',
      icon: Database,
      run: () => void navigate({ to: '/t/$team/datasources/$id', params: { team: slug, id } }),
    })),
    ...teams.map(({ name, slug: other }): Command => ({
      label: name,
      kind: 'Team',
      icon: Users,
      run: () => void navigate({ to: '/t/$team', params: { team: other } }),
    })),
    act(
      'Create key',
      KeyRound,
      () => void navigate({ to: '/settings/keys', search: { create: '1' } }),
      'api new token',
    ),
    ...(isAdmin
      ? [
          act('Connect a datasource', Plus, go('/t/$team/datasources/new'), 'database postgres mongodb bigquery new'),
          act(
            'Invite a colleague',
            UserPlus,
            () => void navigate({ to: '/t/$team/members', params: { team: slug }, search: { invite: '1' } }),
            'member',
          ),
        ]
      : []),
    { label: 'Profile', kind: 'Page', icon: UserRound, run: go('/settings/profile'), also: 'name theme account' },
    {
      label: 'Security',
      kind: 'Page',
      icon: UserRound,
      run: go('/settings/security'),
      also: 'password passkey sessions two-factor',
    },
    act('Use the light theme', Sun, () => chooseTheme('light')),
    act('Use the dark theme', Moon, () => chooseTheme('dark')),
    act('Sign out', LogOut, () => void signOut(), 'log out'),
  ]
}

const SHOWN = 50

/** Returns the commands that contain every typed word, at most 50. Labels that start with the text come first. */
function matching(commands: readonly Command[], text: string): readonly Command[] {
  const words = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '')
  const all = commands.filter(({ label, kind, also = '' }) => {
    const where = `${label} ${kind} ${also}`.toLowerCase()
    return words.every((word) => where.includes(word))
  })
  const starts = ({ label }: Command) => (label.toLowerCase().startsWith(text.toLowerCase()) ? 0 : 1)
  return (text === '' ? all : all.toSorted((a, b) => starts(a) - starts(b))).slice(0, SHOWN)
}
