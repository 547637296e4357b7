// Suggests repairs of a refused SQL text. Each repair is one small change, and adds only exposed names.
import type { Catalog, Denied } from './driver.ts'
import { nearest } from './nearest.ts'

type Typed = (names: readonly string[]) => string

/**
 * Returns Driver.repairs() for bodies with `sql`. `typed` returns a dotted name as a caller must type it in this SQL.
 */
export function sqlRepairs(typed: Typed): (body: object, denied: Denied, exposed: Catalog) => readonly object[] {
  return (body, denied, exposed) => {
    const sql: unknown = Reflect.get(body, 'sql')
    if (typeof sql !== 'string') return []
    return candidatesFor(sql, denied, exposed, typed).map((text) => ({ ...body, sql: text }))
  }
}

/** Returns texts with one change each, the likeliest first. */
function candidatesFor(text: string, { blocked, position }: Denied, exposed: Catalog, typed: Typed): readonly string[] {
  if (blocked.kind === 'statement') return withoutLock(text)
  if (position === undefined || position >= text.length) return []
  switch (blocked.kind) {
    case 'column':
      return [
        ...renamed(text, position, blocked.name, columnNames(text, exposed), typed),
        ...withoutItem(text, position),
      ]
    case 'table':
      return renamed(
        text,
        position,
        blocked.name,
        exposed.tables.map(({ table }) => table),
        typed,
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

const COLUMNS_MAX = 10_000

const LOCK = /\sFOR\s+(?:NO\s+KEY\s+UPDATE|UPDATE|KEY\s+SHARE|SHARE)\b[^)]*$/i

/** Returns the text without a clause such as FOR UPDATE at its end, or an empty list if it has none. */
function withoutLock(text: string): readonly string[] {
  return LOCK.test(text) ? [text.replace(LOCK, '').trimEnd()] : []
}

/**
 * Returns the columns of the tables whose names occur in the text. If no name occurs, returns the columns of all
 * tables, but reads at most COLUMNS_MAX, because reading all of a large catalog would block the event loop.
 */
function columnNames(text: string, { tables }: Catalog): ReadonlySet<string> {
  const words = new Set(text.toLowerCase().match(/[\p{L}\p{N}_$]+/gu))
  const named = tables.filter(({ table }) => words.has(table.toLowerCase()))
  const names = new Set<string>()
  let read = 0
  for (const { columns } of named.length > 0 ? named : tables) {
    for (const { name } of columns) {
      if (++read > COLUMNS_MAX) return names
      names.add(name)
    }
  }
  return names
}

const NAME = /(?:"(?:[^"]|"")*"|`[^`]*`|[\p{L}_][\p{L}\p{N}_$]*)/u.source
const PATH = new RegExp(`${NAME}(?:\\s*\\.\\s*${NAME})*`, 'uy')
const ALIAS = new RegExp(`^\\s+AS\\s+${NAME}`, 'iu')

interface Span {
  readonly from: number
  readonly to: number
}

/** Returns the begin and the end of the dotted name at this position, or null if there is none. */
function pathAt(text: string, position: number): Span | null {
  PATH.lastIndex = position
  const found = PATH.exec(text)
  return found === null ? null : { from: position, to: position + found[0].length }
}

/**
 * For the dotted name at the position, finds the exposed names that are most similar to its last part. Returns a text
 * with each of them instead.
 */
function renamed(
  text: string,
  position: number,
  name: string,
  names: Iterable<string>,
  typed: Typed,
): readonly string[] {
  const path = pathAt(text, position)
  if (path === null) return []
  const parts = [...text.slice(path.from, path.to).matchAll(new RegExp(NAME, 'gu'))]
  const last = parts.at(-1)
  if (last === undefined) return []
  const at = path.from + last.index
  const wanted = name.split('.').at(-1) ?? name
  return nearest(wanted, names).map((near) => text.slice(0, at) + typed([near]) + text.slice(at + last[0].length))
}

/**
 * Removes the item of a list that begins at the position, with its alias (`AS name`). The item must be a name or a
 * call, and have a comma before or after it.
 */
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

/**
 * If a parenthesis opens at `from`, returns the offset after the closing parenthesis. Otherwise returns `from`. A
 * parenthesis in a string or a quoted name can lead to a wrong end. That does no harm, because confine() checks every
 * repaired text.
 */
function callEnd(text: string, from: number): number {
  if (text[from] !== '(') return from
  let depth = 0
  for (let at = from; at < text.length; at++) {
    if (text[at] === '(') depth++
    else if (text[at] === ')' && --depth === 0) return at + 1
  }
  return from
}
