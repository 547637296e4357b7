// If BigQuery does not find a column, the hint has the names that are visible at this point of the caller's SQL. It is
// computed only after the query has failed, so the state of the walk is kept as long as the query.
import { typedName } from '../quote.ts'
import { near } from './did-you-mean.ts'
import type { Scope } from './scope.ts'
import type { Walk } from './walk-state.ts'

const SHOWN_MAX = 40
const ITEMS_MAX = 20
/** At most this many visible names are compared with the unknown name. */
const COMPARED_MAX = 10_000

/**
 * Returns a hint for the unknown column `name` at the position `at`: the nearest names, then the names that FROM makes
 * visible. `at` is -1 if the position is unknown.
 */
export function columnHint({ runs, sets }: Walk, name: string, at: number): string {
  const holding = runs.find(({ run }) =>
    run.some((piece) => piece.kind !== 'nested' && piece.at <= at && at < piece.end),
  )
  const scope = holding?.scope ?? runs.find((each) => each.scope !== null)?.scope ?? null
  if (scope === null) return 'FROM shows no columns here: GET …/schema lists the columns of each table.'
  const names = namesIn(scope, sets)
  const [, , last = name] = /^(.*\.)?([^.]+)$/.exec(name) ?? []
  return `${near(last, names, typedName)}${shown(scope)}`
}

/**
 * The names of the innermost scope come first. A long list is cut, because comparing its names would block the event
 * loop.
 */
function namesIn(scope: Scope, sets: Walk['sets']): ReadonlySet<string> {
  const names = new Set<string>()
  let left = COMPARED_MAX
  for (const columns of scope.inSight()) {
    for (const name of sets.namesOf(columns, left)) {
      names.add(name)
      left--
    }
    if (left <= 0) break
  }
  return names
}

function shown(scope: Scope): string {
  let left = SHOWN_MAX
  const parts: string[] = []
  for (const { alias, names } of scope.items(ITEMS_MAX, SHOWN_MAX + 1)) {
    if (left <= 0) break
    const listed = names.slice(0, left).map(typedName)
    left -= listed.length
    parts.push(
      `${alias === '' ? 'a part of FROM' : typedName(alias)} (${listed.join(', ')}${names.length > listed.length ? ', …' : ''})`,
    )
  }
  return parts.length === 0 ? 'FROM shows no columns here.' : `FROM shows ${parts.join('; ')}.`
}
