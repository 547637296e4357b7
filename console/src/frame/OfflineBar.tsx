import { CloudOff } from 'lucide-react'
import { useObservable } from '../api/observable.ts'
import { online } from '../api/send.ts'
import { Icon } from '../parts/Icon.tsx'

export function OfflineBar() {
  const isOnline = useObservable(online)
  return (
    <div role="status" aria-live="polite" className={isOnline ? 'hidden-words' : 'offline'}>
      {!isOnline && (
        <>
          <Icon of={CloudOff} />
          The service does not answer. Your input is kept.
        </>
      )}
    </div>
  )
}
