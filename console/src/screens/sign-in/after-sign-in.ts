// Runs after a person has signed in: notifies other tabs, and opens the requested page.
import type { AnyRouter } from '@tanstack/react-router'
import { queryClient } from '../../api/queries.ts'
import { signedIn } from '../../api/session.ts'
import { nextPlace } from '../../frame/return-path.ts'

export async function enter(router: AnyRouter, next: string | undefined): Promise<void> {
  queryClient.clear()
  signedIn()
  await router.navigate({ ...nextPlace(next), replace: true })
}
