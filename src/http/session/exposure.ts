// What is shown of a datasource: read the request, call one room, return.
import { getExposure, listExposureVersions, putExposure, type ExposureDeps } from '../../exposure/exposure.ts'
import type { Handlers } from '../handler.ts'

type Names = 'getExposure' | 'putExposure' | 'listExposureVersions'

export function exposureHandlers(deps: ExposureDeps): Pick<Handlers, Names> {
  return {
    getExposure: (at) => getExposure(deps, at.reached),
    putExposure: (at) => putExposure(deps, at.call, at.reached, at.body),
    listExposureVersions: (at) => listExposureVersions(deps, at.reached, at.query),
  }
}
