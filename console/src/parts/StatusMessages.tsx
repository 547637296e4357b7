// Short messages about what just happened. A screen reader announces them. They disappear after a few seconds, so no
// information may be only in a message.
import { Check } from 'lucide-react'
import { observable, useObservable } from '../api/observable.ts'
import { Icon } from './Icon.tsx'

interface Said {
  readonly id: number
  readonly text: string
}

const said = observable<readonly Said[]>([])
const STAYS_MS = 5_000
const MANY = 3
let last = 0

export function say(text: string): void {
  const id = ++last
  said.set([...said.get().slice(1 - MANY), { id, text }])
  setTimeout(() => said.set(said.get().filter((each) => each.id !== id)), STAYS_MS)
}

export function Statuses() {
  const all = useObservable(said)
  return (
    <div className="statuses" role="status" aria-live="polite">
      {all.map(({ id, text }) => (
        <p key={id}>
          <Icon of={Check} />
          {text}
        </p>
      ))}
    </div>
  )
}
