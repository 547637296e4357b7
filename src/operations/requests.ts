import {
  closeRequest,
  listRequests,
  requestExposure,
  requireRequest,
  type RequestDeps,
} from '../exposure/exposure-requests.ts'
import { listRefusals, type RefusalDeps } from '../what-if/list-refusals.ts'
import type { Definitions } from './operation-types.ts'

type Names = 'listRefusals' | 'requestExposure' | 'listRequests' | 'closeRequest'

export function requestOperations(deps: RequestDeps & RefusalDeps): Pick<Definitions, Names> {
  return {
    listRefusals: (at) => listRefusals(deps, at.call, at.membership, at.query),
    requestExposure: (at) => requestExposure(deps, at.call, at.reached, at.body),
    listRequests: (at) => listRequests(deps, at.call, at.membership, at.query),
    closeRequest: {
      require: (at) => requireRequest(deps, at.call, at.membership, at.params.requestId),
      run: (at) => closeRequest(deps, at.call, at.membership, at.params.requestId, at.body),
    },
  }
}
