// The routes of who did what, and how much of it.
import * as shape from './audit-schemas.ts'
import type { Route } from './route.ts'

export const AUDIT_ROUTES = {
  listAudit: {
    method: 'GET',
    path: '/teams/{teamId}/audit',
    summary: 'What was asked, answered, refused and changed, the newest first.',
    place: 'team',
    role: 'ADMIN',
    query: shape.AuditQuery,
    answer: shape.AuditPage,
    errors: ['OVERLOADED'],
  },
  getAuditItem: {
    method: 'GET',
    path: '/teams/{teamId}/audit/{auditId}',
    summary: 'One of them.',
    place: 'team',
    role: 'ADMIN',
    answer: shape.AuditItem,
    errors: ['OVERLOADED'],
  },
  exportAudit: {
    method: 'GET',
    path: '/teams/{teamId}/audit/export',
    summary: 'All of it that the filters let through, as one file.',
    place: 'team',
    role: 'ADMIN',
    query: shape.AuditExportQuery,
    answer: shape.AuditItem,
    streams: ['text/csv', 'application/jsonl'],
    errors: ['RATE_LIMITED', 'OVERLOADED'],
  },
  getUsage: {
    method: 'GET',
    path: '/teams/{teamId}/usage',
    summary: 'Queries by day, key and datasource, and what is left of the budget.',
    place: 'team',
    query: shape.UsageQuery,
    answer: shape.Usage,
    errors: ['OVERLOADED'],
  },
} as const satisfies Record<string, Route>
