// Answers 404 or 405 without a token, so the answer is the same for every caller.
import { AppError } from '../errors.ts'

export interface KnownPath {
  readonly method: string
  /** For example '/teams/{teamId}', or '/auth/*' for all paths below /auth. */
  readonly path: string
}

export function unknownRoute(known: readonly KnownPath[]): (method: string, url: string) => AppError {
  const paths = known.map(({ method, path }) => ({ method, matches: pattern(path) }))
  return (method, url) => {
    const path = url.split('?', 1)[0] ?? ''
    const allowed = new Set(paths.filter(({ matches }) => matches.test(path)).map((each) => each.method))
    if (allowed.has('GET')) allowed.add('HEAD')
    // The route exists, so the request was refused for another reason, such as a parameter that is too long.
    if (allowed.size === 0 || allowed.has(method)) return new AppError('NOT_FOUND', 'There is no such route.')
    const allow = [...allowed].sort().join(', ')
    return new AppError('METHOD_NOT_ALLOWED', `This route accepts ${allow}.`, { headers: { allow } })
  }
}

function pattern(path: string): RegExp {
  const escaped = path.replace(/[.+?^$()|[\]\\]/g, String.raw`\$&`)
  return new RegExp(`^${escaped.replace(/\{[^}]*\}/g, '[^/]+').replace('*', '.*')}$`)
}
