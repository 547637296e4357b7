// The frame of a signed-in person: team menu, search, navigation, account menu, and the page.
import { Link, Outlet, useNavigate, useParams } from '@tanstack/react-router'
import {
  ChevronsUpDown,
  LogOut,
  Menu as MenuIcon,
  Monitor,
  Moon,
  Plus,
  Search,
  ShieldCheck,
  Sun,
  UserRound,
} from 'lucide-react'
import { lazy, Suspense, useEffect, useMemo, useState } from 'react'
import { remember, remembered } from '../api/browser-settings.ts'
import { useRead } from '../api/queries.ts'
import { signOut } from '../api/session.ts'
import type { Account, Team } from '../api/types.ts'
import { Icon } from '../parts/Icon.tsx'
import { Mark } from '../parts/Mark.tsx'
import { Menu, MenuChoice, MenuItem, MenuLine } from '../parts/Menu.tsx'
import { ShortcutHelp } from './ShortcutHelp.tsx'
import { MOD, useKeys, type KeyActions } from './keyboard-shortcuts.ts'
import { OfflineBar } from './OfflineBar.tsx'
import { PLACES } from './navigation.ts'
import { TeamContext } from './current-team.ts'
import { chooseTheme, useTheme } from './theme.ts'

const Palette = lazy(async () => ({ default: (await import('./Palette.tsx')).Palette }))

/**
 * Returns the team in the address, or null if the person has no such team. Without a team in the address, returns the
 * last used team, or else the first team that the person has joined. Returns null if there are none.
 */
export function teamFor(teams: readonly Team[], wanted: string | undefined): Team | null {
  if (wanted !== undefined)
    return teams.find(({ id }) => id === wanted) ?? teams.find(({ slug }) => slug === wanted) ?? null
  const open = teams.filter(({ status }) => status === 'ACTIVE')
  const last = remembered('team')
  return open.find(({ id }) => id === last) ?? open[0] ?? null
}

export function Frame() {
  const { team: wanted } = useParams({ strict: false })
  const teams = useRead('listTeams', {}).data ?? []
  const account = useRead('getAccount', {}).data
  const team = teamFor(teams, wanted) ?? teamFor(teams, undefined)
  const [palette, setPalette] = useState(false)
  const [help, setHelp] = useState(false)
  const teamId = team?.id
  useEffect(() => {
    if (teamId !== undefined) remember('team', teamId)
  }, [teamId])
  useReloadForOther(account)
  useKeys(useFrameKeys(team, setPalette, setHelp))
  return (
    <TeamContext value={team}>
      <SkipLink />
      <div className="frame">
        <header className="side">
          <div className="side-top">
            <TeamMenu team={team} teams={teams} />
            <button type="button" className="side-button search" onClick={() => setPalette(true)}>
              <Icon of={Search} />
              <span className="side-words">
                Search or jump to<span aria-hidden>…</span>
              </span>
              <kbd aria-hidden>{MOD} K</kbd>
            </button>
          </div>
          <Navigation team={team} address={team !== null && wanted === team.id ? wanted : team?.slug} />
          <div className="side-foot">
            {account !== undefined && <AccountMenu account={account} onHelp={() => setHelp(true)} />}
          </div>
        </header>
        <main className="content" id="content" tabIndex={-1}>
          <OfflineBar />
          <Outlet />
        </main>
      </div>
      <Suspense>{palette && <Palette open onClose={() => setPalette(false)} team={team} teams={teams} />}</Suspense>
      <ShortcutHelp open={help} onClose={() => setHelp(false)} />
    </TeamContext>
  )
}

/** Loads the start page if another person signs in in another tab. No data of the first person may stay on the page. */
function useReloadForOther(account: Account | undefined): void {
  const [first, setFirst] = useState<string | null>(null)
  useEffect(() => {
    if (account === undefined) return
    if (first === null) setFirst(account.id)
    else if (first !== account.id) location.assign('/app/')
  }, [account, first])
}

function useFrameKeys(
  team: Team | null,
  setPalette: (open: boolean) => void,
  setHelp: (open: boolean) => void,
): KeyActions {
  const navigate = useNavigate()
  const slug = team?.slug
  return useMemo(
    () => ({
      openPalette: () => setPalette(true),
      openHelp: () => setHelp(true),
      go(key) {
        const place = PLACES.find((each) => each.key === key)
        if (place === undefined || (slug === undefined && place.to.includes('$team'))) return
        void navigate({ to: place.to, params: { team: slug ?? '' } })
      },
    }),
    [navigate, slug, setPalette, setHelp],
  )
}

function SkipLink() {
  return (
    <a
      className="skip"
      href="#content"
      onClick={(event) => {
        event.preventDefault()
        document.getElementById('content')?.focus()
      }}
    >
      Skip to content
    </a>
  )
}

/** The number of items that stay in the bar on a narrow screen. Further items move to the menu More. */
const IN_BAR = 4

/**
 * Shows the navigation. `address` is the team's id if the address of the page contains the id, and otherwise the slug:
 * the router marks the current item only if its link is written like the address.
 */
function Navigation({ team, address }: { readonly team: Team | null; readonly address: string | undefined }) {
  const [more, setMore] = useState(false)
  const close = () => setMore(false)
  const extra = PLACES.length - IN_BAR
  return (
    <nav
      className="nav"
      aria-label="Main"
      data-more={more ? 'open' : undefined}
      style={{ '--extra': extra }}
      onKeyDown={(event) => event.key === 'Escape' && close()}
    >
      <ul>
        {PLACES.map(({ label, to, icon }, n) => (
          <li
            key={label}
            className={n < IN_BAR ? undefined : n === PLACES.length - 1 ? 'nav-extra nav-foot' : 'nav-extra'}
            style={{ '--place': PLACES.length - 1 - n }}
          >
            <Link
              to={team === null ? '/' : to}
              params={{ team: address ?? '' }}
              className="nav-link"
              activeOptions={{ exact: label === 'Home' }}
              inactiveProps={{ 'aria-current': undefined }}
              onClick={close}
            >
              <Icon of={icon} />
              {label}
            </Link>
          </li>
        ))}
        <li className="nav-more-place">
          <button type="button" className="nav-more" aria-expanded={more} onClick={() => setMore(!more)}>
            <Icon of={MenuIcon} />
            More
          </button>
        </li>
      </ul>
    </nav>
  )
}

const initial = (name: string) => [...name.trim()][0]?.toUpperCase() ?? '?'

function TeamMenu({ team, teams }: { readonly team: Team | null; readonly teams: readonly Team[] }) {
  const name = team?.name ?? 'No team'
  return (
    <Menu
      trigger={
        <button type="button" className="side-button" aria-label={`Team: ${name}`}>
          <Mark />
          <bdi className="cut">{name}</bdi>
          <Icon of={ChevronsUpDown} />
        </button>
      }
    >
      <div className="popup-label">Teams</div>
      {teams.map((each) => (
        <MenuItem
          key={each.id}
          render={<Link to="/t/$team" params={{ team: each.slug }} />}
          end={each.id === team?.id ? '✓' : each.status === 'INVITED' ? 'invited' : undefined}
        >
          <span className="avatar team" aria-hidden>
            {initial(each.name)}
          </span>
          <bdi className="cut">{each.name}</bdi>
        </MenuItem>
      ))}
      <MenuLine />
      <MenuItem icon={Plus} render={<Link to="/welcome" />}>
        New team
      </MenuItem>
    </Menu>
  )
}

const THEMES = [
  { value: 'system', label: 'System', icon: Monitor },
  { value: 'light', label: 'Light', icon: Sun },
  { value: 'dark', label: 'Dark', icon: Moon },
] as const

function AccountMenu({ account, onHelp }: { readonly account: Account; readonly onHelp: () => void }) {
  const theme = useTheme()
  return (
    <Menu
      side="top"
      trigger={
        <button type="button" className="side-button">
          <span className="hidden-words">Account</span>
          <span className="avatar" aria-hidden>
            {initial(account.name)}
          </span>
          <bdi className="cut" aria-hidden>
            {account.name}
          </bdi>
          <Icon of={ChevronsUpDown} />
        </button>
      }
    >
      <div className="popup-label">
        <bdi>{account.email}</bdi>
      </div>
      <MenuItem icon={UserRound} render={<Link to="/settings/profile" />}>
        Profile
      </MenuItem>
      <MenuItem icon={ShieldCheck} render={<Link to="/settings/security" />}>
        Security
      </MenuItem>
      <MenuItem onSelect={onHelp} end="?">
        Keys
      </MenuItem>
      <MenuLine />
      <MenuChoice label="Theme" value={theme} options={THEMES} onChange={chooseTheme} />
      <MenuLine />
      <MenuItem icon={LogOut} onSelect={() => void signOut()}>
        Sign out
      </MenuItem>
    </Menu>
  )
}
