// Only managers may use these routes (docs/session.md#operations).
import * as shape from './documentation-schemas.ts'
import { VALUES, type Route } from './route-type.ts'
import { JobStarted, Page } from './schemas.ts'

const DOCUMENTATION = '/teams/{teamId}/datasources/{id}/documentation'

export const DOCUMENTATION_ROUTES = {
  getDocumentation: {
    method: 'GET',
    path: DOCUMENTATION,
    summary: 'Returns the draft documentation of each table, with origin, status and dependencies of each text.',
    place: 'datasource',
    role: 'ADMIN',
    answer: shape.Documentation,
    errors: [],
  },
  putDocumentation: {
    method: 'PUT',
    path: `${DOCUMENTATION}/{schema}/{table}`,
    summary:
      'Changes the documentation of one table: accepts, edits, rejects or confirms texts, or marks columns as personal.',
    place: 'datasource',
    role: 'ADMIN',
    body: shape.DocumentationPut,
    valuesMax: VALUES.many,
    namesAsKeys: true,
    answer: shape.DocumentationSaved,
    errors: ['CONFLICT'],
  },
  generateDocumentation: {
    method: 'POST',
    path: `${DOCUMENTATION}/generate`,
    summary: 'Proposes texts for the exposed tables, as a job. A text is published only after a person accepts it.',
    place: 'datasource',
    role: 'ADMIN',
    body: shape.GenerateOrder,
    valuesMax: VALUES.many,
    bodyOptional: true,
    answer: JobStarted,
    status: 202,
    errors: ['CONFLICT', 'NOT_CONNECTED', 'DATASOURCE_DISABLED', 'RATE_LIMITED'],
  },
  acceptDocumentation: {
    method: 'POST',
    path: `${DOCUMENTATION}/accept`,
    summary:
      'Accepts every proposed text, or only the texts of some tables or kinds. Texts about changed columns stay PROPOSED.',
    place: 'datasource',
    role: 'ADMIN',
    body: shape.AcceptOrder,
    valuesMax: VALUES.many,
    bodyOptional: true,
    answer: shape.Accepted,
    errors: ['CONFLICT'],
  },
  listPublications: {
    method: 'GET',
    path: `${DOCUMENTATION}/publications`,
    summary: 'Lists every publication with its author and what it changed, newest first.',
    place: 'datasource',
    role: 'ADMIN',
    query: Page,
    answer: shape.Publications,
    errors: [],
  },
  publishDocumentation: {
    method: 'POST',
    path: `${DOCUMENTATION}/publish`,
    summary: 'Publishes every accepted and confirmed text. Descriptions include them from the next request on.',
    place: 'datasource',
    role: 'ADMIN',
    body: shape.PublishOrder,
    bodyOptional: true,
    answer: shape.Published,
    errors: ['CONFLICT'],
  },
} as const satisfies Record<string, Route>
