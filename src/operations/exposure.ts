import {
  getDrift,
  getExposure,
  getExposureVersion,
  listBriefVersions,
  listExposureVersions,
  putExposure,
  type SavingDeps,
} from '../exposure/exposure.ts'
import { getExposureGrants } from '../datasources/exposure-grants.ts'
import { exposureFromRefusal } from '../what-if/propose-from-refusal.ts'
import { previewExposure, type PreviewDeps } from '../what-if/preview.ts'
import { requireIntrospected } from '../exposure/require-usable.ts'
import type { Definitions } from './operation-types.ts'

type Names =
  | 'getExposure'
  | 'putExposure'
  | 'listExposureVersions'
  | 'getExposureVersion'
  | 'getExposureGrants'
  | 'getDrift'
  | 'previewExposure'
  | 'exposureFromRefusal'

export function exposureOperations(deps: SavingDeps & PreviewDeps): Pick<Definitions, Names> {
  return {
    getExposure: (at) => getExposure(deps, at.reached),
    putExposure: (at) => putExposure(deps, at.call, at.reached, at.body),
    listExposureVersions: (at) =>
      at.query.brief === '1'
        ? listBriefVersions(deps, at.reached, at.query)
        : listExposureVersions(deps, at.reached, at.query),
    getExposureVersion: (at) => getExposureVersion(deps, at.reached, at.params.version),
    getExposureGrants: {
      require: async (at) => requireIntrospected(at.reached.row),
      run: (at) => getExposureGrants(deps, at.reached),
    },
    getDrift: (at) => getDrift(deps, at.reached),
    previewExposure: {
      require: async (at) => requireIntrospected(at.reached.row),
      run: (at) => previewExposure(deps, at.call, at.reached, at.body),
    },
    exposureFromRefusal: (at) => exposureFromRefusal(deps, at.call, at.reached, at.params.auditId),
  }
}
