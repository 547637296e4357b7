// Readers of the audit can filter by kind of action. This file says which actions belong to each kind.
import { ROUTES } from '../../contract/key-routes.ts'
import { SESSION_ROUTES } from '../../contract/signed-in-routes.ts'

export type ActionKind = 'query' | 'change' | 'read' | 'signIn'

/** If `others` is false, the actions in `names`. If it is true, all actions except these. */
export interface Actions {
  readonly names: ReadonlySet<string>
  readonly others: boolean
}

const QUERY: readonly string[] = ['runQuery', 'checkQuery']
/** These routes use POST, but change no setting. */
const READING_POSTS: readonly string[] = ['previewExposure', 'exposureFromRefusal', 'testDatasource']
const READ = Object.entries({ ...ROUTES, ...SESSION_ROUTES })
  .filter(([, route]) => route.method === 'GET')
  .map(([id]) => id)
  .concat(READING_POSTS)
/** The actions under /auth, and the actions of the operator. */
const SIGN_IN: readonly string[] = [
  'signUp',
  'signIn',
  'signOut',
  'verifyEmail',
  'changePassword',
  'resetPassword',
  'revokeSession',
  'revokeSessions',
  'revokeOtherSessions',
  'beginSecondFactor',
  'confirmSecondFactor',
  'showSecondFactor',
  'renewBackupCodes',
  'endSecondFactor',
  'resetSecondFactor',
  'addPasskey',
  'renamePasskey',
  'removePasskey',
  'connectProvider',
  'disconnectProvider',
]

const NAMED: Readonly<Record<Exclude<ActionKind, 'change'>, readonly string[]>> = {
  query: QUERY,
  read: READ,
  signIn: SIGN_IN,
}

/** Every action that is not listed above is a change. */
export function actionsOf(kinds: readonly ActionKind[]): Actions {
  const others = kinds.includes('change')
  const chosen = Object.entries(NAMED).filter(([kind]) => kinds.some((each) => each === kind) !== others)
  return { names: new Set(chosen.flatMap(([, names]) => names)), others }
}

export function coversAll(kinds: readonly ActionKind[]): boolean {
  return kinds.includes('change') && Object.keys(NAMED).every((kind) => kinds.some((each) => each === kind))
}
