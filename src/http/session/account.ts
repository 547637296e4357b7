// One's own account: read the request, call one room, return.
import { deleteAccount, renameAccount } from '../../auth/accounts.ts'
import type { Handlers } from '../handler.ts'

type Deps = Parameters<typeof deleteAccount>[0]

export function accountHandlers(deps: Deps): Pick<Handlers, 'changeAccount' | 'deleteAccount'> {
  return {
    changeAccount: (at) => renameAccount(deps, at.call, at.body),
    deleteAccount: (at) => deleteAccount(deps, at.call, at.body),
  }
}
