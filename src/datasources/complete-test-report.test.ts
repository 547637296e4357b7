import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestReport } from '../drivers/driver.ts'
import type { DatasourceType } from '../drivers/datasource-type.ts'
import { toldReport } from './complete-test-report.ts'

const AT = '2026-01-01T00:00:00.000Z'

function reportOf(type: DatasourceType, ...steps: readonly (readonly [string, string | null])[]) {
  const report: TestReport = {
    ok: true,
    latencyMs: 1,
    serverVersion: '1',
    steps: steps.map(([name, remedy]) => ({ name, status: 'WARN', message: 'm', remedy })),
    grade: 'WARN',
  }
  return toldReport(type, report, AT)
}

test('a remedy with commands has another kind than a remedy with advice, for each kind of database', () => {
  for (const [type, remedy, kind] of [
    ['POSTGRES', 'CREATE ROLE "r" LOGIN;\nGRANT …', 'SQL'],
    ['POSTGRES', 'REVOKE CREATE ON SCHEMA "public" FROM PUBLIC;', 'SQL'],
    ['POSTGRES', 'Upgrade the server to PostgreSQL 14 or newer.', 'TEXT'],
    ['MONGODB', 'use shop\ndb.createRole({', 'MONGO'],
    ['MONGODB', 'Upgrade the server to MongoDB 6.0 or newer.', 'TEXT'],
    ['BIGQUERY', 'gcloud iam service-accounts create x', 'GCLOUD'],
    ['BIGQUERY', 'Give them roles/bigquery.metadataViewer on the datasets.', 'TEXT'],
  ] as const) {
    assert.equal(reportOf(type, ['writes', remedy]).steps[0]?.remedyKind, kind, remedy)
  }
})

test('steps with the same remedy have the same remedyId: the id of the first of them', () => {
  const { steps, remedies } = reportOf(
    'POSTGRES',
    ['tls', null],
    ['row security', 'A'],
    ['roles', 'B'],
    ['writes', 'A'],
  )
  assert.deepEqual(
    steps.map(({ id, remedyId }) => [id, remedyId]),
    [
      ['tls', null],
      ['row-security', 'row-security'],
      ['roles', 'roles'],
      ['writes', 'row-security'],
    ],
  )
  assert.deepEqual(remedies, { 'row-security': 'A', roles: 'B' })
})

test('a step about the login has the field serviceAccountKey for BIGQUERY, and username or no field for other databases', () => {
  assert.equal(reportOf('BIGQUERY', ['writes', 'x']).steps[0]?.field, 'serviceAccountKey')
  assert.equal(reportOf('MONGODB', ['writes', 'x']).steps[0]?.field, 'username')
  assert.equal(reportOf('MONGODB', ['server version', 'x']).steps[0]?.field, null)
})
