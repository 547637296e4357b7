// Checks that Node is new enough to run this code. This file must run under any version, so it imports no other file.

/** The oldest version for the bundle. Earlier versions of Node 22 lack parts of node:sqlite. */
export const NODE_BUNDLE_MIN = '22.16'

/**
 * The oldest version that can run this program. The source (.ts) has syntax of Node 24, which the bundle does not have.
 */
const NODE_MIN = import.meta.url.endsWith('.ts') ? '24.0' : NODE_BUNDLE_MIN

/**
 * Returns, for example, `Vitrine needs Node 22.16 or newer. This is Node v20.20.2.` Returns null if the version is new
 * enough.
 */
export function nodeProblem(version: string, least = NODE_MIN): string | null {
  const [major = 0, minor = 0] = version.replace(/^v/, '').split('.').map(Number)
  const [leastMajor = 0, leastMinor = 0] = least.split('.').map(Number)
  const isNew = major > leastMajor || (major === leastMajor && minor >= leastMinor)
  return isNew ? null : `Vitrine needs Node ${least} or newer. This is Node ${version}.`
}
