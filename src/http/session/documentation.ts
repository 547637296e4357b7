// What is said of a datasource's tables: read the request, call one room, return.
import { getDocumentation, putDocumentation, type DocumentationDeps } from '../../documentation/documentation.ts'
import { generateDocumentation, type GenerateDeps } from '../../documentation/generate.ts'
import { publishDocumentation } from '../../documentation/publish.ts'
import type { Handlers } from '../handler.ts'

type Names = 'getDocumentation' | 'putDocumentation' | 'generateDocumentation' | 'publishDocumentation'

export function documentationHandlers(deps: DocumentationDeps & GenerateDeps): Pick<Handlers, Names> {
  return {
    getDocumentation: (at) => getDocumentation(deps, at.reached),
    putDocumentation: (at) => putDocumentation(deps, at.call, at.reached, at.params, at.body),
    generateDocumentation: (at) => generateDocumentation(deps, at.call, at.reached, at.body),
    publishDocumentation: (at) => publishDocumentation(deps, at.call, at.reached, at.body ?? {}),
  }
}
