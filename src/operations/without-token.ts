// Operations without an access token. A secret in the path, such as the token of an invitation, authorizes the caller.
import { notFound } from '../errors.ts'
import type { OPEN_ROUTES } from '../contract/routes-without-token.ts'
import { previewInvitation } from '../teams/invitation-preview.ts'

interface OpenInput {
  readonly params: Readonly<Record<string, string>>
  readonly address: string
}

export type OpenOperations = Readonly<Record<keyof typeof OPEN_ROUTES, (input: OpenInput) => Promise<unknown>>>

/** The characters of our tokens. */
const TOKEN = /^[\w-]{1,200}$/

export function openRouteOperations(deps: Parameters<typeof previewInvitation>[0]): OpenOperations {
  return {
    getInvitation: async ({ params, address }) => {
      const token = params['inviteToken'] ?? ''
      if (!TOKEN.test(token)) throw notFound()
      return await previewInvitation(deps, token, address)
    },
  }
}
