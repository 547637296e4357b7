// Renders what every page shares: status messages, and the dialog "Sign in again".
import { Outlet, useRouter, useRouterState } from '@tanstack/react-router'
import { useEffect, useRef } from 'react'
import { Statuses } from '../parts/StatusMessages.tsx'
import { SignInAgain } from './SignInAgain.tsx'

export function Root() {
  useFocusOnNewPage()
  return (
    <>
      <Outlet />
      <SignInAgain />
      <Statuses />
    </>
  )
}

/**
 * After a navigation, the focus moves to the heading, so that a screen reader announces the page. A focus on a tab or
 * in an input field stays there.
 */
function useFocusOnNewPage(): void {
  const router = useRouter()
  const path = useRouterState({ select: ({ resolvedLocation }) => resolvedLocation?.pathname })
  const last = useRef(path)
  useEffect(() => {
    const isFirst = last.current === undefined || last.current === path
    last.current = path
    if (isFirst || document.activeElement?.getAttribute('role') === 'tab') return
    if (document.activeElement instanceof HTMLInputElement) return
    document.querySelector<HTMLElement>('h1')?.focus({ preventScroll: true })
  }, [path, router])
}
