// Tells the other tabs of this browser that the person signed in or out, with BroadcastChannel. Browsers without it
// report only a sign-out, by a storage event. A tab that gets no message notices a sign-out when its next call is
// refused.
import { remember } from './browser-settings.ts'

export type TabMessage = 'signed-in' | 'signed-out'

const channel = open()

function open(): BroadcastChannel | null {
  try {
    return new BroadcastChannel('vitrine')
  } catch {
    return null
  }
}

export function tellTabs(message: TabMessage): void {
  if (channel !== null) channel.postMessage(message)
  else if (message === 'signed-out') remember('signed-out', String(Date.now()))
}

export function onTabMessage(listener: (message: TabMessage) => void): void {
  if (channel !== null) {
    channel.addEventListener('message', ({ data }) => {
      if (data === 'signed-in' || data === 'signed-out') listener(data)
    })
    return
  }
  addEventListener('storage', ({ key }) => {
    if (key === 'vitrine.signed-out') listener('signed-out')
  })
}
