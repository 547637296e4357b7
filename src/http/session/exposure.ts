// What is shown of a datasource: read the request, call one room, return.
import type { Descriptions } from '../../datasources/descriptions.ts'
import { getDrift, getExposure, listExposureVersions, putExposure, type SavingDeps } from '../../exposure/exposure.ts'
import { exposureFromRefusal } from '../../exposure/from-refusal.ts'
import { previewExposure, type PreviewDeps } from '../../exposure/preview.ts'
import type { Handlers } from '../handler.ts'

type Names =
  'getExposure' | 'putExposure' | 'listExposureVersions' | 'getDrift' | 'previewExposure' | 'exposureFromRefusal'

interface Deps extends SavingDeps, PreviewDeps {
  readonly descriptions: Pick<Descriptions, 'ahead'>
}

export function exposureHandlers(deps: Deps): Pick<Handlers, Names> {
  return {
    getExposure: (at) => getExposure(deps, at.reached),
    putExposure: async (at) => {
      const saved = await putExposure(deps, at.call, at.reached, at.body)
      await deps.descriptions.ahead(at.reached.id)
      return saved
    },
    listExposureVersions: (at) => listExposureVersions(deps, at.reached, at.query),
    getDrift: (at) => getDrift(deps, at.reached),
    previewExposure: (at) => previewExposure(deps, at.call, at.reached, at.body),
    exposureFromRefusal: (at) => exposureFromRefusal(deps, at.call, at.reached, at.params.auditId),
  }
}
