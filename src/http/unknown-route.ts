// Answers unknown routes: 404, or 405 if the path is known under other methods. Both come before the token check, so
// they depend on no caller and reveal no data.
import { AppError } from '../errors.ts'

export interface KnownPath {
  readonly method: string
  /** '/teams/{teamId}', or '/auth/*' for every path below it. */
  readonly path: string
}

/** Returns the refusal of a method and URL that no route matched. */
export function unknownRoute(known: readonly KnownPath[]): (method: string, url: string) => AppError {
  const paths = known.map(({ method, path }) => ({ method, matches: pattern(path) }))
  return (method, url) => {
    const path = url.split('?', 1)[0] ?? ''
    const allowed = new Set(paths.filter(({ matches }) => matches.test(path)).map((each) => each.method))
    if (allowed.has('GET')) allowed.add('HEAD')
    // If the path matches under this method, the request was refused for another reason, such as a parameter that is
    // too long.
    if (allowed.size === 0 || allowed.has(method)) return new AppError('NOT_FOUND', 'There is no such route.')
    const allow = [...allowed].sort().join(', ')
    return new AppError('METHOD_NOT_ALLOWED', `This route accepts ${allow}.`, { headers: { allow } })
  }
}

function pattern(path: string): RegExp {
  const escaped = path.replace(/[.+?^$()|[\]\\]/g, String.raw`\$&`)
  return new RegExp(`^${escaped.replace(/\{[^}]*\}/g, '[^/]+').replace('*', '.*')}$`)
}
