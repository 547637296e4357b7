// The contents of an invitation, for the holder of its link. Needs no sign-in.
import { useQuery } from '@tanstack/react-query'
import { isStatus } from '../../api/failure.ts'
import { send } from '../../api/send.ts'
import type { Invitation } from '../../api/types.ts'

export function useInvitation(token: string | undefined) {
  return useQuery({
    queryKey: ['invitation', token ?? ''],
    enabled: token !== undefined,
    retry: (failures, error) => failures < 2 && !isStatus(error, 404),
    queryFn: async ({ signal }): Promise<Invitation> =>
      (await send({ method: 'GET', path: `/invitations/${encodeURIComponent(token ?? '')}`, signal })).json(),
  })
}
