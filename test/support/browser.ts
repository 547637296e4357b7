// A person’s browser, for tests without HTTP. It stores the cookies that it receives under /auth, and sends them back.
import { auth, type Rooms } from './people.ts'

export interface TestBrowser {
  readonly jar: Map<string, string>
  ask(route: string, body?: unknown, origin?: string): ReturnType<typeof auth>
}

/** `origin` is the origin of the service’s pages. */
export function browserOf(rooms: Pick<Rooms, 'signIn'>, origin: string): TestBrowser {
  const jar = new Map<string, string>()
  return {
    jar,
    async ask(route, body, from = origin) {
      const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
      const answer = await auth(rooms, route, body, {
        cookie,
        headers: route.startsWith('GET') ? {} : { origin: from },
      })
      for (const line of answer.cookies) {
        const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
        if (/max-age=0/i.test(line)) jar.delete(name)
        else jar.set(name, value)
      }
      return answer
    },
  }
}
