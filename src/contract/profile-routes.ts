// Profiling reads values of exposed columns (docs/session.md#operations).
import { ProfileOrder } from './profile-schemas.ts'
import { VALUES, type Route } from './route-type.ts'
import { JobStarted } from './schemas.ts'

export const PROFILE_ROUTES = {
  profileDatasource: {
    method: 'POST',
    path: '/teams/{teamId}/datasources/{id}/profile',
    summary: 'Profiles the values of exposed columns, as a job. Descriptions then include the statistics.',
    place: 'datasource',
    role: 'ADMIN',
    body: ProfileOrder,
    valuesMax: VALUES.many,
    bodyOptional: true,
    answer: JobStarted,
    status: 202,
    errors: ['CONFLICT', 'NOT_CONNECTED', 'DATASOURCE_DISABLED', 'RATE_LIMITED'],
  },
} as const satisfies Record<string, Route>
