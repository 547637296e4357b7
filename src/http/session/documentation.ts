// What is said of a datasource's tables: read the request, call one room, return.
import type { Descriptions } from '../../datasources/descriptions.ts'
import { getDocumentation, putDocumentation, type DocumentationDeps } from '../../documentation/documentation.ts'
import { generateDocumentation, type GenerateDeps } from '../../documentation/generate.ts'
import { publishDocumentation } from '../../documentation/publish.ts'
import type { Handlers } from '../handler.ts'

type Names = 'getDocumentation' | 'putDocumentation' | 'generateDocumentation' | 'publishDocumentation'

type Deps = DocumentationDeps & GenerateDeps & { readonly descriptions: Pick<Descriptions, 'ahead'> }

export function documentationHandlers(deps: Deps): Pick<Handlers, Names> {
  return {
    getDocumentation: (at) => getDocumentation(deps, at.reached),
    putDocumentation: async (at) => {
      const saved = await putDocumentation(deps, at.call, at.reached, at.params, at.body)
      // A mark withdraws what the description tells of a column.
      void deps.descriptions.ahead(at.reached.id)
      return saved
    },
    generateDocumentation: (at) => generateDocumentation(deps, at.call, at.reached, at.body),
    publishDocumentation: async (at) => {
      const published = await publishDocumentation(deps, at.call, at.reached, at.body ?? {})
      await deps.descriptions.ahead(at.reached.id)
      return published
    },
  }
}
