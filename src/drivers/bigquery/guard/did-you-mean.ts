// Writes "Did you mean" for GoogleSQL names, with the quotes that they need. All candidates must be exposed or allowed
// names.
import { didYouMean, nearest } from '../../nearest.ts'
import { identifier, typedName } from '../quote.ts'

/**
 * At most this many names are compared letter by letter: names of a similar length, and names that contain the unknown
 * name.
 */
const COMPARED_MAX = 400

/** Returns `Did you mean a or b? ` with the space at the end, or '' if no name is near. `write` quotes a name. */
export function near(name: string, candidates: Iterable<string>, write: (name: string) => string): string {
  const fitting: string[] = []
  const [least, most] = [(name.length * 2) / 3 - 1, (name.length * 3) / 2 + 1]
  const lower = name.toLowerCase()
  for (const candidate of candidates) {
    if (candidate.toLowerCase() === lower) return `${didYouMean([write(candidate)])} `
    const isFitting = candidate.length >= least && candidate.length <= most
    if (fitting.length < COMPARED_MAX && (isFitting || candidate.toLowerCase().includes(lower))) fitting.push(candidate)
  }
  const sentence = didYouMean(nearest(name, fitting).map(write))
  return sentence === '' ? '' : `${sentence} `
}

export function quotedPath(path: string): string {
  const parts = path.split('.')
  return parts.every((part) => typedName(part) === part) ? path : identifier(path)
}
