import { account, deleteAccount, renameAccount } from '../auth/own-account.ts'
import type { Definitions } from './operation-types.ts'

type Deps = Parameters<typeof account>[0] & Parameters<typeof deleteAccount>[0]

export function accountOperations(deps: Deps): Pick<Definitions, 'getAccount' | 'changeAccount' | 'deleteAccount'> {
  return {
    getAccount: (at) => account(deps, at.call),
    changeAccount: (at) => renameAccount(deps, at.call, at.body),
    deleteAccount: (at) => deleteAccount(deps, at.call, at.body),
  }
}
