// The exposure of a datasource, its versions, drift, and previews. Only managers may use these routes.
import { JobStarted } from './schemas.ts'
import { VALUES, type Route } from './route-type.ts'
import * as shape from './exposure-schemas.ts'

const DATASOURCE = '/teams/{teamId}/datasources/{id}'
/** An exposure may name every column of a large warehouse. */
const EXPOSURE_BYTES = 8 << 20

export const EXPOSURE_ROUTES = {
  getExposure: {
    method: 'GET',
    path: `${DATASOURCE}/exposure`,
    summary: 'Returns the exposed tables and columns.',
    place: 'datasource',
    role: 'ADMIN',
    answer: shape.Exposure,
    errors: [],
  },
  putExposure: {
    method: 'PUT',
    path: `${DATASOURCE}/exposure`,
    summary: 'Sets the exposed tables and columns, from the next request on.',
    place: 'datasource',
    role: 'ADMIN',
    body: shape.ExposurePut,
    bodyLimit: EXPOSURE_BYTES,
    valuesMax: VALUES.exposure,
    answer: shape.Exposure,
    errors: ['CONFLICT'],
  },
  listExposureVersions: {
    method: 'GET',
    path: `${DATASOURCE}/exposure/versions`,
    summary: 'Lists every saved exposure with its author, newest first.',
    place: 'datasource',
    role: 'ADMIN',
    query: shape.VersionPage,
    answer: shape.ExposureVersions,
    errors: [],
  },
  getExposureVersion: {
    method: 'GET',
    path: `${DATASOURCE}/exposure/versions/{version}`,
    summary: 'Returns one saved exposure.',
    place: 'datasource',
    role: 'ADMIN',
    answer: shape.ExposureVersion,
    errors: [],
  },
  getExposureGrants: {
    method: 'GET',
    path: `${DATASOURCE}/exposure/grants`,
    summary: 'Returns commands that make the database itself refuse what the exposure hides.',
    place: 'datasource',
    role: 'ADMIN',
    answer: shape.ExposureGrants,
    errors: ['NOT_CONNECTED'],
  },
  getDrift: {
    method: 'GET',
    path: `${DATASOURCE}/drift`,
    summary: 'Lists what was added, removed or changed its type in the database since the exposure was saved.',
    place: 'datasource',
    role: 'ADMIN',
    answer: shape.Drift,
    errors: [],
  },
  previewExposure: {
    method: 'POST',
    path: `${DATASOURCE}/exposure/preview`,
    summary: 'Checks audited queries against a proposed exposure, as a job. The database is not queried.',
    place: 'datasource',
    role: 'ADMIN',
    body: shape.PreviewOrder,
    bodyLimit: EXPOSURE_BYTES,
    valuesMax: VALUES.exposure,
    answer: JobStarted,
    status: 202,
    errors: ['CONFLICT', 'NOT_CONNECTED', 'RATE_LIMITED'],
  },
  exposureFromRefusal: {
    method: 'POST',
    path: `${DATASOURCE}/exposure/from-refusal/{auditId}`,
    summary: 'Returns the smallest change of the exposure that would allow a refused query.',
    place: 'datasource',
    role: 'ADMIN',
    answer: shape.Widened,
    errors: ['CONFLICT', 'NOT_CONNECTED', 'SCHEMA_STALE'],
  },
} as const satisfies Record<string, Route>
