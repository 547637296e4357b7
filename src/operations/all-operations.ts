// The operations of the contract. REST and the connector authenticate the caller and then call these functions.
import { ROUTES } from '../contract/key-routes.ts'
import { SESSION_ROUTES } from '../contract/signed-in-routes.ts'
import { accessOperations } from './access-lists.ts'
import { accountOperations } from './account.ts'
import { auditOperations } from './audit.ts'
import { datasourceOperations } from './datasources.ts'
import { documentationOperations } from './documentation.ts'
import { exposureOperations } from './exposure.ts'
import { instanceOperations } from './instance.ts'
import { grantOperations } from './grants.ts'
import { jobOperations } from './jobs.ts'
import { keyOperations } from './keys.ts'
import { memberOperations } from './members.ts'
import { requestOperations } from './requests.ts'
import { profileOperations } from './profiles.ts'
import { queryOperations } from './queries.ts'
import { teamOperations } from './teams.ts'
import { webhookOperations } from './webhooks.ts'
import type { Definitions } from './operation-types.ts'
import { bind, type Operations, type SharedDeps } from './order-of-checks.ts'

type Rooms = Parameters<typeof accessOperations>[0] &
  Parameters<typeof accountOperations>[0] &
  Parameters<typeof auditOperations>[0] &
  Parameters<typeof datasourceOperations>[0] &
  Parameters<typeof documentationOperations>[0] &
  Parameters<typeof exposureOperations>[0] &
  Parameters<typeof instanceOperations>[0] &
  Parameters<typeof grantOperations>[0] &
  Parameters<typeof jobOperations>[0] &
  Parameters<typeof keyOperations>[0] &
  Parameters<typeof memberOperations>[0] &
  Parameters<typeof profileOperations>[0] &
  Parameters<typeof queryOperations>[0] &
  Parameters<typeof requestOperations>[0] &
  Parameters<typeof teamOperations>[0] &
  Parameters<typeof webhookOperations>[0]

export function openOperations(shared: SharedDeps, rooms: Rooms): Operations {
  const definitions: Definitions = {
    ...instanceOperations(rooms),
    ...accountOperations(rooms),
    ...keyOperations(rooms),
    ...grantOperations(rooms),
    ...teamOperations(rooms),
    ...memberOperations(rooms),
    ...datasourceOperations(rooms),
    ...accessOperations(rooms),
    ...exposureOperations(rooms),
    ...profileOperations(rooms),
    ...documentationOperations(rooms),
    ...queryOperations(rooms),
    ...jobOperations(rooms),
    ...auditOperations(rooms),
    ...requestOperations(rooms),
    ...webhookOperations(rooms),
  }
  return bind(shared, { ...ROUTES, ...SESSION_ROUTES }, definitions)
}
