// The library's verification link contains only the address. If the account is deleted and somebody else signs up with
// the same address, the old link would verify the new account. So an HMAC binds the link to the account.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { decodeJwt } from 'jose'
import type { AccountId } from '../ids.ts'
import type { Secrets } from '../secrets.ts'
import type { Store } from '../store/open.ts'
import { accountBy } from './account-by-address.ts'

export interface AccountLinks {
  /** Returns the library's token, bound to the account. */
  bound(token: string, accountId: string): string
  /** Returns null if the link is invalid, or its account no longer exists. */
  opened(text: string): Promise<Opened | null>
}

interface Opened {
  readonly accountId: AccountId
  readonly email: string
  /** Milliseconds since 1970. */
  readonly endsAt: number
}

export function accountLinks(deps: {
  readonly store: Pick<Store, 'db'>
  readonly secrets: Pick<Secrets, 'derive'>
}): AccountLinks {
  const key = deps.secrets.derive('account links')
  const proof = (token: string, accountId: string) =>
    createHmac('sha256', key)
      .update(JSON.stringify([token, accountId]))
      .digest('base64url')
  return {
    bound: (token, accountId) => `${token}.${proof(token, accountId)}`,
    async opened(text) {
      const [, token = '', sent = ''] = /^([\w-]+\.[\w-]+\.[\w-]+)\.([\w-]{43})$/.exec(text) ?? []
      const claims = claimsIn(token)
      if (claims === null) return null
      const { email, endsAt } = claims
      const accountId = await accountBy(deps.store, email)
      if (accountId === null) return null
      const isOurs = timingSafeEqual(Buffer.from(sent), Buffer.from(proof(token, accountId)))
      return isOurs ? { accountId, email, endsAt } : null
    },
  }
}

/** The caller must verify the token. */
function claimsIn(token: string): { readonly email: string; readonly endsAt: number } | null {
  try {
    const { email, exp } = decodeJwt(token)
    return typeof email === 'string' && exp !== undefined ? { email: email.toLowerCase(), endsAt: exp * 1000 } : null
  } catch {
    return null
  }
}
