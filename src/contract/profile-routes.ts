// The route that looks at the values behind a datasource's exposed columns (session-interface.md §6).
import { ProfileOrder } from './profile-schemas.ts'
import type { Route } from './route.ts'
import { JobStarted } from './schemas.ts'

export const PROFILE_ROUTES = {
  profileDatasource: {
    method: 'POST',
    path: '/teams/{teamId}/datasources/{id}/profile',
    summary: 'Looks at the values of exposed columns, in a job; the description then tells what they are like.',
    place: 'datasource',
    role: 'ADMIN',
    body: ProfileOrder,
    bodyOptional: true,
    answer: JobStarted,
    status: 202,
    errors: ['CONFLICT', 'NOT_CONNECTED', 'DATASOURCE_DISABLED'],
  },
} as const satisfies Record<string, Route>
