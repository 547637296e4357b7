// Suggests repairs for a refused SQL text. Each repair makes one small change and adds exposed names only.
import type { Catalog, Denied } from './driver.ts'
import { nearest } from './nearest.ts'

type Typed = (names: readonly string[]) => string

/**
 * Implements Driver.repairs() for bodies with `sql`. `typed` returns a dotted name as the caller must type it in the
 * SQL of this database, with quotes if needed.
 */
export function sqlRepairs(typed: Typed): (body: object, denied: Denied, exposed: Catalog) => readonly object[] {
  return (body, denied, exposed) => {
    const sql: unknown = Reflect.get(body, 'sql')
    if (typeof sql !== 'string') return []
    return candidatesFor(sql, denied, exposed, typed).map((text) => ({ ...body, sql: text }))
  }
}

/** Returns copies of the text with one change each. The change most likely to be allowed comes first. */
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

const LOCK = /\sFOR\s+(?:NO\s+KEY\s+UPDATE|UPDATE|KEY\s+SHARE|SHARE)\b[^)]*$/i

/**
 * Returns the text without FOR UPDATE or a similar clause at its end. Returns an empty list if there is no such clause.
 */
function withoutLock(text: string): readonly string[] {
  return LOCK.test(text) ? [text.replace(LOCK, '').trimEnd()] : []
}

/** Returns the columns of the tables that the text names, or of all tables if the text names no table. */
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

/** Finds the dotted name that begins at the position. Returns null if no name begins there. */
function pathAt(text: string, position: number): Span | null {
  PATH.lastIndex = position
  const found = PATH.exec(text)
  return found === null ? null : { from: position, to: position + found[0].length }
}

/**
 * Returns one text for each of the nearest exposed names. The exposed name replaces the last part of the dotted name
 * that begins at the position.
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
 * Removes the list item that begins at the position. The item must be a plain name or a call, with a comma before or
 * after it. An alias (`AS name`) is removed with the item.
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
 * If a parenthesis opens at `from`, returns the offset after its closing parenthesis. Otherwise returns `from`. A
 * parenthesis inside a string literal or a quoted name may give a wrong end. A wrong end is safe, because confine()
 * checks every repaired text.
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
