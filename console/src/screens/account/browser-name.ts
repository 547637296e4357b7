// What a browser and its system are called, by the name that it gives itself.

const BROWSERS = [
  [/Edg\//, 'Edge'],
  [/Firefox\//, 'Firefox'],
  [/Chrome\//, 'Chrome'],
  [/Safari\//, 'Safari'],
  [/curl\//, 'curl'],
] as const
const SYSTEMS = [
  [/iPhone|iPad/, 'iOS'],
  [/Android/, 'Android'],
  [/Mac OS X/, 'macOS'],
  [/Windows/, 'Windows'],
  [/Linux/, 'Linux'],
] as const

/** `Firefox on Linux`, or the text itself where it names no browser that we know. */
export function browserName(userAgent: string | null): string {
  const agent = userAgent ?? ''
  const browser = BROWSERS.find(([pattern]) => pattern.test(agent))?.[1]
  const system = SYSTEMS.find(([pattern]) => pattern.test(agent))?.[1]
  if (browser === undefined) return agent === '' ? 'Unknown' : agent.slice(0, 60)
  return system === undefined ? browser : `${browser} on ${system}`
}
