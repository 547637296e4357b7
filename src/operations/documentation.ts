import {
  getDocumentation,
  putDocumentation,
  requireDocumented,
  type DocumentationDeps,
} from '../documentation/drafts.ts'
import { generateDocumentation, type GenerateDeps } from '../documentation/generate-job.ts'
import { acceptDocumentation } from '../documentation/accept-proposals.ts'
import { listPublications, publishDocumentation } from '../documentation/publish.ts'
import { requireUsable } from '../exposure/require-usable.ts'
import type { Definitions } from './operation-types.ts'

type Names =
  | 'getDocumentation'
  | 'putDocumentation'
  | 'generateDocumentation'
  | 'acceptDocumentation'
  | 'listPublications'
  | 'publishDocumentation'

export function documentationOperations(deps: DocumentationDeps & GenerateDeps): Pick<Definitions, Names> {
  return {
    getDocumentation: (at) => getDocumentation(deps, at.reached),
    putDocumentation: {
      require: (at) => requireDocumented(deps, at.reached, at.params),
      run: (at) => putDocumentation(deps, at.call, at.reached, at.params, at.body),
    },
    generateDocumentation: {
      require: async (at) => requireUsable(at.reached.row),
      run: (at) => generateDocumentation(deps, at.call, at.reached, at.body),
    },
    acceptDocumentation: (at) => acceptDocumentation(deps, at.call, at.reached, at.body ?? {}),
    listPublications: (at) => listPublications(deps, at.reached, at.query),
    publishDocumentation: (at) => publishDocumentation(deps, at.call, at.reached, at.body ?? {}),
  }
}
