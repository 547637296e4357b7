// The routes of the audit and of usage.
import * as shape from './audit-schemas.ts'
import type { Route } from './route.ts'

export const AUDIT_ROUTES = {
  listAudit: {
    method: 'GET',
    path: '/teams/{teamId}/audit',
    summary: 'Lists queries, reads, refusals and changes, newest first.',
    place: 'team',
    role: 'ADMIN',
    query: shape.AuditQuery,
    answer: shape.AuditPage,
    errors: ['OVERLOADED'],
  },
  getAuditItem: {
    method: 'GET',
    path: '/teams/{teamId}/audit/{auditId}',
    summary: 'Returns one audit item.',
    place: 'team',
    role: 'ADMIN',
    answer: shape.AuditItem,
    errors: ['OVERLOADED'],
  },
  exportAudit: {
    method: 'GET',
    path: '/teams/{teamId}/audit/export',
    summary: 'Exports all audit items that match the filters, as one file.',
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
    summary: 'Returns query counts by day, key and datasource, and the remaining budget.',
    place: 'team',
    query: shape.UsageQuery,
    answer: shape.Usage,
    errors: ['OVERLOADED'],
  },
} as const satisfies Record<string, Route>
