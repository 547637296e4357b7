// The routes of what is shown of a datasource (session-interface.md §6): the exposure, its versions, drift, and what a
// change would do. All are its managers'.
import { Page, JobStarted } from './schemas.ts'
import type { Route } from './route.ts'
import * as shape from './exposure-schemas.ts'

const DATASOURCE = '/teams/{teamId}/datasources/{id}'
/** An exposure may name every column of a large warehouse. */
const EXPOSURE_BYTES = 8 << 20

export const EXPOSURE_ROUTES = {
  getExposure: {
    method: 'GET',
    path: `${DATASOURCE}/exposure`,
    summary: 'Which tables and columns are shown.',
    place: 'datasource',
    role: 'ADMIN',
    answer: shape.Exposure,
    errors: [],
  },
  putExposure: {
    method: 'PUT',
    path: `${DATASOURCE}/exposure`,
    summary: 'Sets which tables and columns are shown, from the next request on.',
    place: 'datasource',
    role: 'ADMIN',
    body: shape.ExposurePut,
    bodyLimit: EXPOSURE_BYTES,
    answer: shape.Exposure,
    errors: ['CONFLICT', 'NOT_CONNECTED'],
  },
  listExposureVersions: {
    method: 'GET',
    path: `${DATASOURCE}/exposure/versions`,
    summary: 'Every exposure that was saved, with its author, the newest first.',
    place: 'datasource',
    role: 'ADMIN',
    query: Page,
    answer: shape.ExposureVersions,
    errors: [],
  },
  getDrift: {
    method: 'GET',
    path: `${DATASOURCE}/drift`,
    summary: 'What is new, gone or of another type in the database since the exposure was saved.',
    place: 'datasource',
    role: 'ADMIN',
    answer: shape.Drift,
    errors: [],
  },
  previewExposure: {
    method: 'POST',
    path: `${DATASOURCE}/exposure/preview`,
    summary: 'Replays audited queries against a proposed exposure, in a job; nothing is asked of the database.',
    place: 'datasource',
    role: 'ADMIN',
    body: shape.PreviewOrder,
    bodyLimit: EXPOSURE_BYTES,
    answer: JobStarted,
    status: 202,
    errors: ['CONFLICT', 'NOT_CONNECTED'],
  },
  exposureFromRefusal: {
    method: 'POST',
    path: `${DATASOURCE}/exposure/from-refusal/{auditId}`,
    summary: 'The smallest change of the exposure that would let a refused query pass.',
    place: 'datasource',
    role: 'ADMIN',
    answer: shape.Widened,
    errors: ['CONFLICT', 'NOT_CONNECTED'],
  },
} as const satisfies Record<string, Route>
