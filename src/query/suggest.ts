// Suggests a repaired query with a refusal: the caller's own text with a small change that the guard lets through. Only
// exposed names are written into the text, and only a text that the guard confined is offered. It runs after a refusal,
// so answered queries do not pay for it.
import type { Catalog, Denied, Driver, Limits } from '../drivers/driver.ts'
import { nearest } from '../drivers/nearest.ts'

/** A longer text is not repaired. */
const CHARS_MAX = 4_096
/** The most texts that the guard judges for one refusal. */
const TRIES_MAX = 10
/** The most places that are changed. */
const CHANGES_MAX = 3

export interface Refused {
  readonly driver: Pick<Driver, 'type' | 'read' | 'confine' | 'typed'>
  /** The caller's body. */
  readonly body: unknown
  readonly denied: Denied
  readonly exposed: Catalog
  readonly limits: Limits
}

/** The repaired text, or undefined if no small change was found. Only SQL is repaired. */
export async function suggestionFor(refused: Refused, signal: AbortSignal): Promise<string | undefined> {
  const { driver, body, exposed, limits } = refused
  if (driver.type === 'MONGODB' || typeof body !== 'object' || body === null) return undefined
  const sql: unknown = Reflect.get(body, 'sql')
  if (typeof sql !== 'string' || sql.length > CHARS_MAX) return undefined
  const judge = async (text: string) =>
    await driver.confine(driver.read({ ...body, sql: text }), exposed, limits, signal)
  /** Texts to repair, the fewest changes first. */
  const open: { readonly text: string; readonly denied: Denied; readonly changes: number }[] = [
    { text: sql, denied: refused.denied, changes: 0 },
  ]
  const seen = new Set([sql])
  let tries = 0
  for (const { text, denied, changes } of open) {
    for (const candidate of candidatesFor(text, denied, exposed, driver)) {
      if (seen.has(candidate)) continue
      if (tries >= TRIES_MAX || signal.aborted) return undefined
      tries++
      seen.add(candidate)
      const verdict = await judge(candidate)
      if (verdict.kind === 'confined') return candidate
      if (verdict.kind === 'denied' && isAnotherPlace(verdict, denied) && changes + 1 < CHANGES_MAX) {
        open.push({ text: candidate, denied: verdict, changes: changes + 1 })
      }
    }
  }
  return undefined
}

/** The change helped: what is refused now is something else. */
function isAnotherPlace(now: Denied, before: Denied): boolean {
  return now.blocked.name !== before.blocked.name || now.blocked.kind !== before.blocked.kind
}

/** Texts with one change each, the likeliest first. */
function candidatesFor(
  text: string,
  { blocked, position }: Denied,
  exposed: Catalog,
  driver: Pick<Driver, 'typed'>,
): readonly string[] {
  if (blocked.kind === 'statement') return withoutLock(text)
  if (position === undefined || position >= text.length) return []
  switch (blocked.kind) {
    case 'column':
      return [
        ...renamed(text, position, blocked.name, columnNames(text, exposed), driver),
        ...withoutItem(text, position),
      ]
    case 'table':
      return renamed(
        text,
        position,
        blocked.name,
        exposed.tables.map(({ table }) => table),
        driver,
      )
    case 'function':
    case 'type':
    case 'operator':
      return withoutItem(text, position)
    case 'stage':
    case 'cost':
    case 'limit':
      return []
    default:
      return blocked.kind satisfies never
  }
}

const LOCK = /\s+FOR\s+(?:NO\s+KEY\s+UPDATE|UPDATE|KEY\s+SHARE|SHARE)\b[^)]*$/i

/** The text without FOR UPDATE or a similar clause at its end. */
function withoutLock(text: string): readonly string[] {
  return LOCK.test(text) ? [text.replace(LOCK, '')] : []
}

/** The columns of the tables that the text names; of all tables if it names none. */
function columnNames(text: string, { tables }: Catalog): ReadonlySet<string> {
  const words = new Set(text.toLowerCase().match(/[\p{L}\p{N}_$]+/gu))
  const named = tables.filter(({ table }) => words.has(table.toLowerCase()))
  return new Set((named.length > 0 ? named : tables).flatMap(({ columns }) => columns.map(({ name }) => name)))
}

const NAME = /(?:"(?:[^"]|"")*"|`[^`]*`|[\p{L}_][\p{L}\p{N}_$]*)/u.source
const PATH = new RegExp(`${NAME}(?:\\s*\\.\\s*${NAME})*`, 'uy')
const ALIAS = new RegExp(`^\\s+AS\\s+${NAME}`, 'iu')

interface Span {
  readonly from: number
  readonly to: number
}

/** The dotted name at a position. */
function pathAt(text: string, position: number): Span | null {
  PATH.lastIndex = position
  const found = PATH.exec(text)
  return found === null ? null : { from: position, to: position + found[0].length }
}

/** The last part of the name is replaced by the nearest exposed names. */
function renamed(
  text: string,
  position: number,
  name: string,
  names: Iterable<string>,
  driver: Pick<Driver, 'typed'>,
): readonly string[] {
  const path = pathAt(text, position)
  if (path === null) return []
  const parts = [...text.slice(path.from, path.to).matchAll(new RegExp(NAME, 'gu'))]
  const last = parts.at(-1)
  if (last === undefined) return []
  const at = path.from + last.index
  const wanted = name.split('.').at(-1) ?? name
  return nearest(wanted, names).map(
    (near) => text.slice(0, at) + driver.typed([near]) + text.slice(at + last[0].length),
  )
}

/** The text without the item of a list that begins at the position, if it is a plain name or call between commas. */
function withoutItem(text: string, position: number): readonly string[] {
  const path = pathAt(text, position)
  if (path === null) return []
  const item = { from: path.from, to: callEnd(text, path.to) }
  const alias = ALIAS.exec(text.slice(item.to))?.[0].length ?? 0
  const before = /,\s*$/.exec(text.slice(0, item.from))
  const after = /^\s*,\s*/.exec(text.slice(item.to + alias))
  if (before !== null) return [text.slice(0, before.index) + text.slice(item.to + alias)]
  if (after !== null) return [text.slice(0, item.from) + text.slice(item.to + alias + after[0].length)]
  return []
}

/** The end of the parentheses that follow, if any. Quoted parentheses lead to a text that the guard refuses. */
function callEnd(text: string, from: number): number {
  if (text[from] !== '(') return from
  let depth = 0
  for (let at = from; at < text.length; at++) {
    if (text[at] === '(') depth++
    else if (text[at] === ')' && --depth === 0) return at + 1
  }
  return from
}
