// The routes of what is said of a datasource's tables (session-interface.md §6). All are its managers'.
import * as shape from './documentation-schemas.ts'
import type { Route } from './route.ts'
import { JobStarted } from './schemas.ts'

const DOCUMENTATION = '/teams/{teamId}/datasources/{id}/documentation'

export const DOCUMENTATION_ROUTES = {
  getDocumentation: {
    method: 'GET',
    path: DOCUMENTATION,
    summary: 'What is said of each table, in draft: where it comes from, what became of it, what it rests on.',
    place: 'datasource',
    role: 'ADMIN',
    answer: shape.Documentation,
    errors: [],
  },
  putDocumentation: {
    method: 'PUT',
    path: `${DOCUMENTATION}/{schema}/{table}`,
    summary: 'Changes what is said of one table: accepts, edits, rejects, confirms, or marks columns personal.',
    place: 'datasource',
    role: 'ADMIN',
    body: shape.DocumentationPut,
    namesAsKeys: true,
    answer: shape.DocumentationSaved,
    errors: ['CONFLICT'],
  },
  generateDocumentation: {
    method: 'POST',
    path: `${DOCUMENTATION}/generate`,
    summary: 'Proposes texts for the exposed tables, in a job; nothing of it is published before a person accepts it.',
    place: 'datasource',
    role: 'ADMIN',
    body: shape.GenerateOrder,
    bodyOptional: true,
    answer: JobStarted,
    status: 202,
    errors: ['CONFLICT', 'NOT_CONNECTED', 'DATASOURCE_DISABLED'],
  },
  publishDocumentation: {
    method: 'POST',
    path: `${DOCUMENTATION}/publish`,
    summary: 'Publishes every accepted and confirmed text; the description carries them from the next request on.',
    place: 'datasource',
    role: 'ADMIN',
    body: shape.PublishOrder,
    bodyOptional: true,
    answer: shape.Published,
    errors: ['CONFLICT'],
  },
} as const satisfies Record<string, Route>
