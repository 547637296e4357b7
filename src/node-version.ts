// Checks that Node is new enough. This file must run under any version, so it imports no other file.

/** The oldest version for the bundle. Older versions lack parts of node:sqlite. */
export const NODE_BUNDLE_MIN = '22.16'

/** Unlike the bundle, the source (.ts) has syntax of Node 24. */
const NODE_MIN = import.meta.url.endsWith('.ts') ? '24.0' : NODE_BUNDLE_MIN

/** Null, or for example `Vitrine needs Node 22.16 or newer. This is Node v20.20.2.` */
export function nodeProblem(version: string, least = NODE_MIN): string | null {
  const [major = 0, minor = 0] = version.replace(/^v/, '').split('.').map(Number)
  const [leastMajor = 0, leastMinor = 0] = least.split('.').map(Number)
  const isNew = major > leastMajor || (major === leastMajor && minor >= leastMinor)
  return isNew ? null : `Vitrine needs Node ${least} or newer. This is Node ${version}.`
}
