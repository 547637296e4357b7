// The five endpoints for API keys (docs/contract.md). No other route may declare a scope.
import { z } from 'zod'
import { VALUES, type Route } from './route-type.ts'
import * as shape from './schemas.ts'

export const ROUTES = {
  getAccount: {
    method: 'GET',
    path: '/users/me',
    summary: 'Returns the account of the token.',
    scope: 'profile',
    answer: shape.Account,
    errors: [],
  },
  listTeams: {
    method: 'GET',
    path: '/teams',
    summary:
      'Lists the teams of the account that the caller may enter, including teams that the account has not opened.',
    scope: 'data:schema',
    answer: z.array(shape.Team),
    errors: [],
  },
  listDatasources: {
    method: 'GET',
    path: '/teams/{teamId}/datasources',
    summary: 'Lists the datasources of a team that the caller reaches.',
    scope: 'data:schema',
    place: 'team',
    stranger: 'TEAM_FORBIDDEN',
    answer: z.array(shape.Datasource),
    errors: [],
  },
  describeDatasource: {
    method: 'GET',
    path: '/teams/{teamId}/datasources/{id}/schema',
    summary:
      'Describes the exposed tables and columns of a datasource. With full=1, managers get the whole introspected schema.',
    scope: 'data:schema',
    place: 'datasource',
    query: z.strictObject({ full: z.literal('1').exactOptional() }),
    answer: shape.Description,
    prebuilt: true,
    errors: ['ROLE_REQUIRED', 'NOT_CONNECTED'],
  },
  runQuery: {
    method: 'POST',
    path: '/teams/{teamId}/datasources/{id}/query',
    summary: 'Runs one read-only query within the exposure.',
    scope: 'data:read',
    place: 'datasource',
    body: shape.QueryBody,
    valuesMax: VALUES.many,
    rawBody: true,
    answer: shape.QueryResult,
    prebuilt: true,
    errors: [
      'INVALID_QUERY',
      'QUERY_DENIED',
      'NOT_CONNECTED',
      'DATASOURCE_DISABLED',
      'SCHEMA_STALE',
      'QUERY_FAILED',
      'RATE_LIMITED',
      'DATASOURCE_UNAVAILABLE',
      'OVERLOADED',
      'QUERY_TIMEOUT',
    ],
  },
} as const satisfies Record<string, Route>
