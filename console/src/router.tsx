// Every address of the console. A screen is loaded when a person first opens it or points at a link to it.
import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  notFound,
  redirect,
} from '@tanstack/react-router'
import { SignedOut } from './api/failure.ts'
import { authOptions } from './api/sign-in-options.ts'
import { queryClient, read } from './api/queries.ts'
import { accessToken, hasSession } from './api/session.ts'
import { Frame, teamFor } from './frame/Frame.tsx'
import { nextPlace } from './frame/return-path.ts'
import { NothingHere } from './frame/NothingHere.tsx'
import { PageFailed } from './frame/PageFailed.tsx'
import { Root } from './frame/Root.tsx'
import { texts, type Search } from './frame/address-parameters.ts'

const root = createRootRoute({ component: Root, errorComponent: PageFailed })

// ── signed out ───────────────────────────────────────────────────────────────────────────────────────────────────

/** Skips the page if the person is already signed in. */
async function leaveIfSignedIn({ search }: { readonly search: Search<'next'> }): Promise<void> {
  if (await hasSession()) throw redirect(nextPlace(search.next))
}

const outside = createRoute({ getParentRoute: () => root, id: 'outside' })

const setup = createRoute({
  getParentRoute: () => outside,
  path: '/setup',
  validateSearch: texts('next', 'failed', 'provider'),
  beforeLoad: async ({ search }) => {
    const { firstAccount } = await queryClient.fetchQuery(authOptions)
    if (!firstAccount) throw redirect({ to: '/sign-in', search })
  },
  component: lazyRouteComponent(() => import('./screens/sign-in/Setup.tsx'), 'Setup'),
})

const signIn = createRoute({
  getParentRoute: () => outside,
  path: '/sign-in',
  validateSearch: texts('next', 'failed', 'provider'),
  beforeLoad: async ({ search }) => {
    await leaveIfSignedIn({ search })
    const { firstAccount } = await queryClient.fetchQuery(authOptions)
    if (firstAccount) throw redirect({ to: '/setup', search })
  },
  component: lazyRouteComponent(() => import('./screens/sign-in/SignIn.tsx'), 'SignIn'),
})

const signUp = createRoute({
  getParentRoute: () => outside,
  path: '/sign-up',
  validateSearch: texts('next', 'invite'),
  beforeLoad: async ({ search }) => {
    await leaveIfSignedIn({ search })
    await queryClient.fetchQuery(authOptions)
  },
  component: lazyRouteComponent(() => import('./screens/sign-in/SignUp.tsx'), 'SignUp'),
})

const twoFactor = createRoute({
  getParentRoute: () => outside,
  path: '/two-factor',
  validateSearch: texts('next'),
  component: lazyRouteComponent(() => import('./screens/sign-in/SecondFactorCode.tsx'), 'SecondFactorCode'),
})

const reset = createRoute({
  getParentRoute: () => outside,
  path: '/reset',
  validateSearch: texts('token'),
  component: lazyRouteComponent(() => import('./screens/sign-in/Reset.tsx'), 'Reset'),
})

const verify = createRoute({
  getParentRoute: () => outside,
  path: '/verify',
  validateSearch: texts('token', 'callbackURL'),
  component: lazyRouteComponent(() => import('./screens/sign-in/Verify.tsx'), 'Verify'),
})

const invite = createRoute({
  getParentRoute: () => outside,
  path: '/invite/$token',
  component: lazyRouteComponent(() => import('./screens/sign-in/InvitationPage.tsx'), 'InvitationPage'),
})

// ── signed in ────────────────────────────────────────────────────────────────────────────────────────────────────

const inside = createRoute({
  getParentRoute: () => root,
  id: 'inside',
  errorComponent: PageFailed,
  beforeLoad: async ({ location, abortController }) => {
    if (!(await hasSession())) {
      const { firstAccount } = await queryClient.fetchQuery(authOptions)
      if (firstAccount) throw redirect({ to: '/setup' })
      throw redirect({ to: '/sign-in', search: { next: location.publicHref } })
    }
    try {
      await accessToken(abortController.signal)
    } catch (error) {
      if (error instanceof SignedOut) throw redirect({ to: '/sign-in', search: { next: location.publicHref } })
      throw error
    }
    const [teams] = await Promise.all([
      queryClient.ensureQueryData(read('listTeams', {})),
      queryClient.ensureQueryData(read('getAccount', {})),
    ])
    return { teams }
  },
})

const start = createRoute({
  getParentRoute: () => inside,
  path: '/',
  beforeLoad: ({ context }) => {
    const team = teamFor(context.teams, undefined)
    if (team === null) throw redirect({ to: '/welcome' })
    throw redirect({ to: '/t/$team', params: { team: team.slug } })
  },
})

const welcome = createRoute({
  getParentRoute: () => inside,
  path: '/welcome',
  component: lazyRouteComponent(() => import('./screens/welcome/Welcome.tsx'), 'Welcome'),
})

const frame = createRoute({
  getParentRoute: () => inside,
  id: 'frame',
  component: Frame,
  notFoundComponent: NothingHere,
})

const nothing = createRoute({ getParentRoute: () => frame, path: '$', component: NothingHere })

const team = createRoute({
  getParentRoute: () => frame,
  path: '/t/$team',
  notFoundComponent: NothingHere,
  beforeLoad: async ({ params }) => {
    // The cached list may lack the team, if somebody just created the team or invited this person.
    const teams = queryClient.getQueryData(read('listTeams', {}).queryKey) ?? []
    const found =
      teamFor(teams, params.team) ?? teamFor(await queryClient.fetchQuery(read('listTeams', {})), params.team)
    if (found === null) throw notFound()
    if (found.status === 'INVITED') throw redirect({ to: '/welcome' })
  },
})

const home = createRoute({
  getParentRoute: () => team,
  path: '/',
  component: lazyRouteComponent(() => import('./screens/home/Home.tsx'), 'Home'),
})

const datasources = createRoute({
  getParentRoute: () => team,
  path: '/datasources',
  component: lazyRouteComponent(() => import('./screens/datasources/Datasources.tsx'), 'Datasources'),
})

const connect = createRoute({
  getParentRoute: () => team,
  path: '/datasources/new',
  component: lazyRouteComponent(() => import('./screens/datasources/Connect.tsx'), 'Connect'),
})

const datasource = createRoute({
  getParentRoute: () => team,
  path: '/datasources/$id',
  notFoundComponent: NothingHere,
  component: lazyRouteComponent(() => import('./screens/datasource/Datasource.tsx'), 'Datasource'),
})

const datasourceStart = createRoute({
  getParentRoute: () => datasource,
  path: '/',
  beforeLoad: ({ params }) => {
    throw redirect({ to: '/t/$team/datasources/$id/exposure', params, replace: true })
  },
})

const exposure = createRoute({
  getParentRoute: () => datasource,
  path: '/exposure',
  validateSearch: texts('from', 'step'),
  component: lazyRouteComponent(() => import('./screens/datasource/Exposure.tsx'), 'Exposure'),
})

const documentation = createRoute({
  getParentRoute: () => datasource,
  path: '/documentation',
  validateSearch: texts('table'),
  component: lazyRouteComponent(() => import('./screens/datasource/Documentation.tsx'), 'Documentation'),
})

const access = createRoute({
  getParentRoute: () => datasource,
  path: '/access',
  component: lazyRouteComponent(() => import('./screens/datasource/Access.tsx'), 'Access'),
})

const health = createRoute({
  getParentRoute: () => datasource,
  path: '/health',
  component: lazyRouteComponent(() => import('./screens/datasource/Health.tsx'), 'Health'),
})

const datasourceSettings = createRoute({
  getParentRoute: () => datasource,
  path: '/settings',
  component: lazyRouteComponent(() => import('./screens/datasource/DatasourceSettings.tsx'), 'DatasourceSettings'),
})

const playground = createRoute({
  getParentRoute: () => team,
  path: '/playground',
  validateSearch: texts('ds', 'q', 'as'),
  component: lazyRouteComponent(() => import('./screens/playground/Playground.tsx'), 'Playground'),
})

const activity = createRoute({
  getParentRoute: () => team,
  path: '/activity',
  validateSearch: texts('tab', 'kind', 'outcome', 'datasource', 'key', 'person', 'from', 'q', 'id'),
  component: lazyRouteComponent(() => import('./screens/activity/Activity.tsx'), 'Activity'),
})

const members = createRoute({
  getParentRoute: () => team,
  path: '/members',
  validateSearch: texts('invite'),
  component: lazyRouteComponent(() => import('./screens/members/Members.tsx'), 'Members'),
})

const teamSettings = createRoute({
  getParentRoute: () => team,
  path: '/settings',
  component: lazyRouteComponent(() => import('./screens/team-settings/TeamSettings.tsx'), 'TeamSettings'),
})

const teamKeys = createRoute({
  getParentRoute: () => team,
  path: '/keys',
  component: lazyRouteComponent(() => import('./screens/keys/TeamKeys.tsx'), 'TeamKeys'),
})

const myKeys = createRoute({
  getParentRoute: () => frame,
  path: '/settings/keys',
  validateSearch: texts('create'),
  component: lazyRouteComponent(() => import('./screens/keys/MyKeys.tsx'), 'MyKeys'),
})

const profile = createRoute({
  getParentRoute: () => frame,
  path: '/settings/profile',
  component: lazyRouteComponent(() => import('./screens/account/Profile.tsx'), 'Profile'),
})

const security = createRoute({
  getParentRoute: () => frame,
  path: '/settings/security',
  validateSearch: texts('failed', 'provider', 'connected'),
  component: lazyRouteComponent(() => import('./screens/account/Security.tsx'), 'Security'),
})

const tree = root.addChildren([
  outside.addChildren([setup, signIn, signUp, twoFactor, reset, verify, invite]),
  inside.addChildren([
    start,
    welcome,
    frame.addChildren([
      team.addChildren([
        home,
        datasources,
        connect,
        datasource.addChildren([datasourceStart, exposure, documentation, access, health, datasourceSettings]),
        playground,
        activity,
        members,
        teamSettings,
        teamKeys,
      ]),
      myKeys,
      profile,
      security,
      nothing,
    ]),
  ]),
])

export const router = createRouter({
  routeTree: tree,
  basepath: '/app',
  defaultPreload: 'intent',
  defaultErrorComponent: PageFailed,
  defaultNotFoundComponent: NothingHere,
  defaultPendingMs: 1_000,
  scrollRestoration: true,
})

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
