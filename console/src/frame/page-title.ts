import { useEffect } from 'react'

export function useTitle(page: string, team: string | null): void {
  useEffect(() => {
    document.title = [page, team, 'Vitrine'].filter((part) => part !== null).join(' · ')
  }, [page, team])
}
